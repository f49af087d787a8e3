package podscope

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// A window whose pods cannot be listed is reported by a later pass, and once.
func TestReportBareAfterError(t *testing.T) {
	now := time.Now()
	down, lists, events := errors.New("down"), 0, record.NewFakeRecorder(4)
	reader := interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
			lists++
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "a", Labels: map[string]string{"app": "a"}, CreationTimestamp: metav1.NewTime(now),
			}}
			into.(*corev1.PodList).Items = []corev1.Pod{pod}
			return down
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return nil
		},
	})
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": map[string]any{"name": "log"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}},
	}}
	r, err := New(reader, Options{Recorder: events})
	if err != nil {
		t.Fatal(err)
	}
	r.objects, r.bare = reader, scope.Window{Since: now.Add(-time.Minute), Until: now.Add(time.Minute)}
	o := entries.Observation{Sets: []*unstructured.Unstructured{set}}
	if err := r.reportBare(t.Context(), o); !errors.Is(err, down) || len(events.Events) != 0 {
		t.Errorf("while pods cannot be listed: %v, %d events", err, len(events.Events))
	}
	down = nil
	for range 2 {
		if err := r.reportBare(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
	if lists != 2 || len(events.Events) != 1 {
		t.Errorf("%d lists of pods and %d events, want 2 and 1", lists, len(events.Events))
	}
}

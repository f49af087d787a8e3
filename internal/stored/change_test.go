package stored_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// What was decided upon is written, unless the object has changed since it was read.
func TestChanges(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(scheme, time.Now)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
	if err := server.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	kind, read := stored.Kind{GVK: corev1.SchemeGroupVersion.WithKind("Pod")}, pod.DeepCopy()
	w := kind.Finalizers(read, []string{"example.com/a"})
	if _, err := runtimeclient.Send(t.Context(), server, w); err != nil {
		t.Fatal(err)
	}
	now := &corev1.Pod{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(pod), now); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(now.Finalizers, []string{"example.com/a"}) {
		t.Errorf("stored %v", now.Finalizers)
	}
	if _, err := runtimeclient.Send(t.Context(), server, w); !apierrors.IsConflict(err) {
		t.Errorf("a write of what was read before got %v, want a conflict", err)
	}
	labelled := now.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	update, err := kind.Update(now, labelled)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtimeclient.Send(t.Context(), server, update); err != nil {
		t.Fatal(err)
	}
	answer, err := runtimeclient.Send(t.Context(), server, stored.Change(now, labelled))
	if !apierrors.IsConflict(err) || answer != nil {
		t.Errorf("a change of what was read before got %v, want a conflict", err)
	}
}

package scope_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// Which sets a pod lacks that was created while its entries were missing.
func TestBare(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := newSet(t, "later", someApp)
	later.CreationTimestamp = metav1.NewTime(begin.Add(time.Hour))
	sets := []*appsv1beta1.SidecarSet{
		newSet(t, "log", someApp), newSet(t, "other", `selector: {matchLabels: {app: b}}`), open(newSet(t, "open", someApp)),
		later,
		newSet(t, "paused", someApp+"\ninjectionStrategy: {paused: true}"),
		newSet(t, "prod", someApp+"\nnamespaceSelector: {matchLabels: {env: prod}}"),
	}
	var stored []*unstructured.Unstructured
	for _, set := range sets {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, &unstructured.Unstructured{Object: content})
	}
	for name, c := range map[string]struct {
		why       string
		app       string
		records   string
		namespace map[string]string
		want      []string
	}{
		"selected":       {"the pod lacks the set", "a", "", nil, []string{"log"}},
		"not selected":   {"no set is lacking", "c", "", nil, nil},
		"injected":       {"the pod records the set", "a", "log,open", nil, nil},
		"injected other": {"each set counts", "a", "prod", map[string]string{"env": "prod"}, []string{"log"}},
		"by namespace": {
			why:       "the labels of the namespace count",
			app:       "a",
			namespace: map[string]string{"env": "prod"},
			want:      []string{"log", "prod"},
		},
		"spared": {"its pods are never sent", "a", "", map[string]string{"control-plane": "x"}, nil},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"app": c.app}, CreationTimestamp: metav1.NewTime(begin),
			Annotations: map[string]string{"kruise.io/sidecarset-injected-list": c.records},
		}}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: c.namespace}}
		if got := scope.Bare(pod, namespace, stored, "kruise-system"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %s: %q, want %q", name, c.why, got, c.want)
		}
	}
}

func TestWindow(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 500e6, time.UTC)
	w := scope.Window{Since: begin, Until: begin.Add(time.Minute)}
	for name, c := range map[string]struct {
		at     time.Duration
		change func(*corev1.Pod)
		want   bool
	}{
		"in it":       {time.Second, nil, true},
		"its second":  {-500 * time.Millisecond, nil, true},
		"before":      {-2 * time.Second, nil, false},
		"after":       {2 * time.Minute, nil, false},
		"finished":    {time.Second, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false},
		"terminating": {time.Second, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: begin} }, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(begin.Add(c.at).Truncate(time.Second)),
		}}
		if name == "its second" {
			pod.CreationTimestamp = metav1.NewTime(begin.Truncate(time.Second))
		}
		if c.change != nil {
			c.change(pod)
		}
		if got := w.Contains(pod); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

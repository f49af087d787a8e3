package markers_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/markers"
)

// Only what decides about probes wakes a reconciler: a report of a kubelet does not.
func TestPodChanged(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1", Labels: map[string]string{"app": "web"}}}
	pod.Spec.NodeName, pod.Status.PodIP, pod.Status.Phase = "node-1", "10.0.0.1", corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	for why, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing": {func(*corev1.Pod) {}, false},
		"readiness": {func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady})
		}, false},
		"containers": {
			func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}} }, false,
		},
		"annotations":     {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		"its UID":         {func(p *corev1.Pod) { p.UID = "2" }, true},
		"its node":        {func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, true},
		"its address":     {func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.2" }, true},
		"labels":          {func(p *corev1.Pod) { p.Labels = nil }, false},
		"its end":         {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"its deletion":    {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, true},
		"its init status": {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
	} {
		is := pod.DeepCopy()
		c.change(is)
		if got := markers.PodChanged(pod, is); got != c.want {
			t.Errorf("a change of %s: %t", why, got)
		}
	}
}

// A NodePodProbe is found by each marker of its probes, once. Probes without a marker, and what cannot be decoded, are
// nowhere.
func TestProbedOf(t *testing.T) {
	probe := func(name string) any {
		return map[string]any{"name": name, "containerName": "main", "probe": map[string]any{}}
	}
	raw := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"podProbes": []any{
		map[string]any{"namespace": "a", "name": "web", "uid": "1", "IP": "", "probes": []any{
			probe("m#x"), probe("m#y"), probe("foreign"), probe("#z"),
		}},
		map[string]any{"namespace": "b", "name": "web", "uid": "2", "IP": "", "probes": []any{probe("m#x")}},
	}}}}
	if got := markers.ProbedOf(raw); !slices.Equal(got, []string{"a/m", "b/m"}) {
		t.Errorf("found by %q", got)
	}
	raw.Object["spec"] = map[string]any{"podProbes": "none"}
	if got := markers.ProbedOf(raw); got != nil {
		t.Errorf("malformed: found by %q", got)
	}
}

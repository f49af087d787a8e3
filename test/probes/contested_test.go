package probes

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/markers"
)

// A label or an annotation that another writer changes is written back less and less often, on both kinds of nodes.
// What a probe finds is marked at once, however often it changes.
func TestContestedMarks(t *testing.T) {
	const turns = 180 // a second each
	for name, c := range map[string]struct {
		node   string
		revert func(*corev1.Pod)
		atMost int
	}{
		"a label":                        {"node-1", func(p *corev1.Pod) { p.Labels["ppm-idle"] = "other" }, 12},
		"an annotation":                  {"node-1", func(p *corev1.Pod) { p.Annotations["ppm-idle"] = "other" }, 12},
		"a label on a virtual node":      {"node-v", func(p *corev1.Pod) { p.Labels["ppm-idle"] = "other" }, 12},
		"an annotation on a virtual one": {"node-v", func(p *corev1.Pod) { p.Annotations["ppm-idle"] = "other" }, 12},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.options.Serverless = true
			w.boot()
			pod := podOf("web-0", c.node, "web")
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: "example.com/ppm-idle", Status: corev1.ConditionFalse, LastTransitionTime: metav1.Time{Time: w.now},
			})
			w.put(nodeOf("node-1", nil), nodeOf("node-v", map[string]string{"type": "virtual-kubelet"}), pod,
				markerOf("ppm", "web", "idle"))
			w.still()
			for range turns {
				w.pod("web-0", c.revert)
				w.turn()
			}
			if n := count(w.writes(), "PATCH pods/"); n < 5 || n > c.atMost {
				t.Errorf("%d writes in %d seconds, want at most %d", n, turns, c.atMost)
			}
		})
	}
	t.Run("a probe that changes", func(t *testing.T) {
		w := newWorld(t)
		w.put(nodeOf("node-1", nil), podOf("web-0", "node-1", "web"), markerOf("ppm", "web", "idle"))
		w.still()
		for k := range 30 {
			w.good["uid-web-0 ppm#idle"] = k%2 == 0
			w.turn()
			w.turn()
			want := map[bool]string{true: "good", false: "bad"}[k%2 == 0]
			if is := w.pods()[0].Labels["ppm-idle"]; is != want {
				t.Fatalf("after %d changes the pod has %q, want %q", k+1, is, want)
			}
		}
	})
}

// A change of labels wakes the reconcilers where another marker selects the pod then.
func TestReselected(t *testing.T) {
	w := newWorld(t)
	w.put(markerOf("ppm", "web", "idle"), markerOf("db", "db", "idle"))
	m := &markers.Markers{Cached: w.Server}
	for labels, want := range map[[2]string]bool{
		{"app", "web"}: false, {"app", "db"}: true, {"app", "none"}: true, {"ppm-idle", "other"}: false,
	} {
		was := podOf("web-0", "node-1", "web")
		is := was.DeepCopy()
		is.Labels[labels[0]] = labels[1]
		if got, err := m.Reselected(t.Context(), was, is); got != want || err != nil {
			t.Errorf("%s: %t, %v", fmt.Sprint(labels), got, err)
		}
	}
}

package probes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// A story is what happens to markers, pods and nodes, the writes of the reconcilers that follow, what nodes then probe,
// and what pods show.
func TestStories(t *testing.T) {
	type step struct {
		what string
		do   func(*world)
	}
	const idle = "uid-web-0 idle#idle"
	for name, story := range map[string][]step{
		"results": {
			{"a marker selects pods of two nodes", func(w *world) {
				w.put(nodeOf("node-1", nil), nodeOf("node-2", nil), podOf("web-0", "node-1", "web"),
					podOf("web-1", "node-2", "web"), markerOf("idle", "web", "idle"))
			}},
			{"a probe succeeds", func(w *world) { w.good[idle] = true }},
			{"it says something else", func(w *world) { w.messages[idle] = "players: 3" }},
			{"its container restarts", func(w *world) { w.fresh = map[string]bool{"uid-web-0": true} }},
			{"the probe has run in the new container", func(w *world) { w.fresh, w.good[idle] = nil, false }},
			{"the marker has another label", func(w *world) {
				w.change("idle", func(m *v1alpha1.PodProbeMarker) {
					m.Spec.Probes[0].MarkerPolicy[1].Labels = map[string]string{"busy": "yes"}
				})
			}},
			{"nothing changes", func(*world) {}},
		},
		"pods": {
			{"a pod has no node yet", func(w *world) {
				w.put(nodeOf("node-1", nil), nodeOf("node-2", nil), podOf("web-0", "", "web"), markerOf("idle", "web", "idle"))
			}},
			{"it is bound", func(w *world) { w.put(podOf("web-0", "node-1", "web")) }},
			{"it gets another address", func(w *world) {
				w.pod("web-0", func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.2" })
			}},
			{"it loses the label", func(w *world) { w.pod("web-0", func(p *corev1.Pod) { p.Labels["app"] = "db" }) }},
			{"it has the label again", func(w *world) { w.pod("web-0", func(p *corev1.Pod) { p.Labels["app"] = "web" }) }},
			{"it ends", func(w *world) { w.pod("web-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }) }},
			{"its node goes", func(w *world) { w.remove(nodeOf("node-1", nil)) }},
		},
		"markers": {
			{"two markers of which one name ends in the other", func(w *world) {
				w.put(nodeOf("node-1", nil), podOf("web-0", "node-1", "web"), markerOf("probe", "web", "a"),
					markerOf("my-probe", "web", "a"))
			}},
			{"one gets another probe", func(w *world) {
				w.change("probe", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = markerOf("probe", "", "a", "b").Spec.Probes })
			}},
			{"it loses the first", func(w *world) {
				w.change("probe", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = m.Spec.Probes[1:] })
			}},
			{"it is deleted", func(w *world) { w.remove(markerOf("probe", "web")) }},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var told strings.Builder
			for i, s := range story {
				if i > 0 {
					told.WriteByte('\n')
				}
				fmt.Fprintln(&told, "#", s.what)
				w.Requests()
				s.do(w)
				w.Requests() // of the test
				for _, write := range w.still() {
					fmt.Fprintln(&told, write)
				}
				shown, asked := w.shown(), w.asked()
				for _, name := range slices.Sorted(maps.Keys(shown)) {
					fmt.Fprintf(&told, "%s shows: %s\n", name, shown[name])
				}
				for _, name := range slices.Sorted(maps.Keys(asked)) {
					fmt.Fprintf(&told, "%s probes: %s\n", name, asked[name])
				}
			}
			storytest.Compare(t, name, told.String())
		})
	}
}

// pod changes a pod.
func (w *world) pod(name string, change func(*corev1.Pod)) {
	w.Helper()
	p := &corev1.Pod{}
	if err := w.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: name}, p); err != nil {
		w.Fatal(err)
	}
	change(p)
	w.put(p)
}

// remove deletes an object.
func (w *world) remove(o client.Object) {
	w.Helper()
	if err := w.Delete(w.Context(), o, client.GracePeriodSeconds(0)); err != nil {
		w.Fatal(err)
	}
}

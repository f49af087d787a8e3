package probes

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// With writes that are refused or whose answers are lost, a cache that lags and managers that restart, nothing that is
// not the markers' changes, and in the end each pod has what its markers say.
func TestRandomWorld(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	worlds := 20
	if testing.Short() {
		worlds = 4
	}
	for range worlds {
		w := newWorld(t)
		w.put(nodeOf("node-1", nil), nodeOf("node-2", nil), nodeOf("node-v", map[string]string{"type": "virtual-kubelet"}))
		w.api.fault = func() (bool, error) {
			switch r.Intn(12) {
			case 0:
				return false, apierrors.NewServiceUnavailable("refused")
			case 1:
				return true, errors.New("the answer is lost")
			case 2:
				return false, apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed"))
			}
			return true, nil
		}
		for range 80 {
			w.random(r)
			switch r.Intn(5) {
			case 0:
				w.api.cache = w.Snapshot()
			case 1:
				w.api.cache = nil
			case 2:
				if w.api.cache == nil { // a manager starts with a cache that is synced
					w.boot()
				}
			}
			w.turn()
			w.check(seed)
		}
		w.api.cache, w.api.fault = nil, nil
		w.now = w.now.Add(time.Hour) // what is recorded of own writes is confirmed by then
		w.still()
		w.settled(seed)
	}
}

// check asserts what holds at each moment.
func (w *world) check(seed int64) {
	w.Helper()
	for _, pod := range w.pods() {
		kubelet := 0
		for _, c := range pod.Status.Conditions {
			if (c == corev1.PodCondition{Type: c.Type, Status: corev1.ConditionTrue}) &&
				(c.Type == corev1.PodInitialized || c.Type == corev1.PodReady) {
				kubelet++
			}
		}
		if kubelet != 2 {
			w.Fatalf("seed %d: a condition of the kubelet changed: %+v", seed, pod.Status.Conditions)
		}
		if pod.Spec.NodeName == "node-v" && len(pod.Status.Conditions) > 2 {
			w.Fatalf("seed %d: a pod of a virtual node is marked: %s", seed, shown(&pod))
		}
	}
	for _, n := range w.probes() {
		seen := map[string]bool{}
		for _, p := range n.Spec.PodProbes {
			if len(p.Probes) == 0 || seen[p.UID] {
				w.Fatalf("seed %d: %s probes %v", seed, n.Name, w.asked())
			}
			seen[p.UID] = true
		}
	}
}

// settled asserts what holds in the end, computed in the dumbest way.
func (w *world) settled(seed int64) {
	w.Helper()
	nodes := map[string]bool{}
	var l corev1.NodeList
	for _, n := range list(w, &l, func() []corev1.Node { return l.Items }) {
		nodes[n.Name] = n.Name != "node-v"
	}
	want := map[string]map[string]bool{}
	for node, daemon := range nodes {
		if daemon {
			want[node] = map[string]bool{}
		}
	}
	for _, m := range w.allMarkers() {
		if m.DeletionTimestamp != nil {
			w.Fatalf("seed %d: marker %s is not deleted", seed, m.Name)
		}
		matched := 0
		for _, pod := range w.pods() {
			if pod.Labels["app"] != m.Spec.Selector.MatchLabels["app"] {
				continue
			}
			if _, there := nodes[pod.Spec.NodeName]; there {
				matched++
			}
			if !nodes[pod.Spec.NodeName] {
				continue
			}
			for _, p := range m.Spec.Probes {
				want[pod.Spec.NodeName][pod.Name+"/"+m.Name+"#"+p.Name] = true
				state, mark := "False", "bad"
				if w.good[string(pod.UID)+" "+m.Name+"#"+p.Name] {
					state, mark = "True", "good"
				}
				text := shown(&pod) + " "
				if !strings.Contains(text, m.Name+"-"+p.Name+"="+state+" ") ||
					!strings.Contains(text, " "+m.Name+"-"+p.Name+":"+mark+" ") {
					w.Fatalf("seed %d: %s has %s, want %s of %s#%s", seed, pod.Name, text, state, m.Name, p.Name)
				}
			}
		}
		if int(m.Status.MatchedPods) != matched || m.Status.ObservedGeneration != m.Generation {
			w.Fatalf("seed %d: %s has %+v, want %d pods", seed, m.Name, m.Status, matched)
		}
	}
	got := map[string]map[string]bool{}
	for node, text := range w.asked() {
		got[node] = map[string]bool{}
		for name := range strings.FieldsSeq(text) {
			got[node][name] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Fatalf("seed %d: probed (-want +got):\n%s", seed, diff)
	}
}

// random is one change of the world.
func (w *world) random(r *rand.Rand) {
	pick := func(all ...string) string { return all[r.Intn(len(all))] }
	pod := podOf(fmt.Sprintf("pod-%d", r.Intn(6)), pick("node-1", "node-2", "node-v"), pick("web", "db"))
	name := types.NamespacedName{Namespace: "shop", Name: pod.Name}
	switch r.Intn(8) {
	case 0:
		if err := w.Get(w.Context(), name, &corev1.Pod{}); apierrors.IsNotFound(err) {
			pod.UID = types.UID(fmt.Sprintf("uid-%s-%d", pod.Name, w.Version()))
			w.put(pod)
		}
	case 1:
		_ = w.Delete(w.Context(), pod, client.GracePeriodSeconds(0))
	case 2: // its labels change
		is := &corev1.Pod{}
		if w.Get(w.Context(), name, is) == nil {
			is.Labels["app"] = pod.Labels["app"]
			w.put(is)
		}
	case 3:
		is := &corev1.Pod{}
		if w.Get(w.Context(), name, is) == nil {
			key := string(is.UID) + " " + pick("m1#a", "m1#b", "m2#a")
			w.good[key] = !w.good[key]
		}
	case 4:
		m := markerOf(pick("m1", "m2"), pick("web", "db"), pick("a", "b"))
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(m), &v1alpha1.PodProbeMarker{}); apierrors.IsNotFound(err) {
			w.put(m)
		}
	case 5:
		m := markerOf(pick("m1", "m2"), "", "")
		_ = w.Delete(w.Context(), m)
	case 6: // its probes change
		for _, m := range w.allMarkers() {
			if m.DeletionTimestamp == nil && r.Intn(2) == 0 {
				w.change(m.Name, func(is *v1alpha1.PodProbeMarker) {
					is.Spec.Probes = markerOf(m.Name, "", "a", "b").Spec.Probes[r.Intn(2):]
				})
			}
		}
	case 7:
		n := nodeOf(pick("node-1", "node-2"), nil)
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(n), &corev1.Node{}); apierrors.IsNotFound(err) {
			w.put(n)
		} else if r.Intn(4) == 0 {
			_ = w.Delete(w.Context(), n, client.GracePeriodSeconds(0))
		}
	}
}

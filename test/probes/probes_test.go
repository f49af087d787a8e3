package probes

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// From the first probe to the deletion of the marker.
func TestLifecycle(t *testing.T) {
	w := newWorld(t)
	w.put(nodeOf("node-1", nil), nodeOf("node-2", nil), nodeOf("node-v", map[string]string{"type": "virtual-kubelet"}))
	w.put(podOf("web-0", "node-1", "web"), podOf("web-1", "node-2", "web"), podOf("web-2", "node-v", "web"),
		podOf("web-3", "", "web"), podOf("db-0", "node-1", "db"))
	w.put(markerOf("ppm", "web", "idle"), markerOf("my-ppm", "web", "up"))
	w.good["uid-web-0 ppm#idle"] = true
	w.still()
	want := map[string]string{
		"web-0": "my-ppm-up=False ppm-idle=True app:web my-ppm-up:bad ppm-idle:good @my-ppm-up:bad",
		"web-1": "my-ppm-up=False ppm-idle=False app:web my-ppm-up:bad ppm-idle:bad @my-ppm-up:bad @ppm-idle:bad",
		"web-2": "app:web", "web-3": "app:web", "db-0": "app:db",
	}
	if diff := cmp.Diff(want, w.shown()); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"node-1": "web-0/my-ppm#up web-0/ppm#idle", "node-2": "web-1/my-ppm#up web-1/ppm#idle",
	}, w.asked()); diff != "" {
		t.Errorf("probed (-want +got):\n%s", diff)
	}
	for _, m := range w.allMarkers() {
		if m.Status.MatchedPods != 3 || m.Status.ObservedGeneration != 1 ||
			!slices.Contains(m.Finalizers, "kruise.io/node-pod-probe-cleanup") {
			t.Errorf("%s has %+v and finalizers %v", m.Name, m.Status, m.Finalizers)
		}
	}

	w.good["uid-web-0 ppm#idle"] = false
	if got := w.still(); !slices.Equal(got, []string{"PATCH pods/web-0/status 200"}) {
		t.Errorf("a flip cost %v", got)
	}
	if got := w.shown()["web-0"]; got !=
		"my-ppm-up=False ppm-idle=False app:web my-ppm-up:bad ppm-idle:bad @my-ppm-up:bad @ppm-idle:bad" {
		t.Errorf("after the flip: %s", got)
	}
	w.messages["uid-web-0 ppm#idle"] = "players: 3"
	if got := w.still(); !slices.Equal(got, []string{"PATCH pods/web-0/status 200"}) {
		t.Errorf("another message cost %v", got)
	}

	// Other marks alone concern pods at once.
	w.change("ppm", func(m *v1alpha1.PodProbeMarker) {
		m.Spec.Probes[0].MarkerPolicy[1].Labels = map[string]string{"busy": "yes"}
	})
	got := w.still()
	if want := []string{
		"PATCH podprobemarkers/ppm/status 200", "PATCH pods/web-0/status 200", "PATCH pods/web-1/status 200",
	}; !slices.Equal(got, want) {
		t.Errorf("other marks cost %v", got)
	}

	if err := w.Delete(t.Context(), markerOf("ppm", "web")); err != nil {
		t.Fatal(err)
	}
	got = w.still()
	if n := count(got, "PATCH nodepodprobes"); n != 2 || count(got, "PATCH podprobemarkers/ppm ") != 1 || len(got) != 3 {
		t.Errorf("the deletion of a marker cost %v", got)
	}
	if diff := cmp.Diff(map[string]string{"node-1": "web-0/my-ppm#up", "node-2": "web-1/my-ppm#up"},
		w.asked()); diff != "" {
		t.Errorf("probed without the marker (-want +got):\n%s", diff)
	}
	if n := len(w.allMarkers()); n != 1 {
		t.Errorf("%d markers are left", n)
	}

	if err := w.Delete(t.Context(), nodeOf("node-2", nil), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.still()
	if _, there := w.asked()["node-2"]; there {
		t.Error("the NodePodProbe of a deleted node is left")
	}
}

func count(all []string, prefix string) int {
	n := 0
	for _, s := range all {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// A marker waits with its finalizer while a node may run its probes.
func TestFinalizerWaits(t *testing.T) {
	w := newWorld(t)
	w.put(nodeOf("node-1", nil), podOf("web-0", "node-1", "web"), markerOf("ppm", "web", "idle"))
	w.still()
	if err := w.Delete(t.Context(), markerOf("ppm", "web")); err != nil {
		t.Fatal(err)
	}
	w.nodes = w.ppms // no reconciler of NodePodProbes
	for range 3 {
		w.turn()
	}
	if n := len(w.allMarkers()); n != 1 {
		t.Error("the marker is gone while a node runs its probes")
	}
	w.boot()
	w.still()
	if n := len(w.allMarkers()); n != 0 {
		t.Error("the marker is left although no node runs its probes")
	}
}

// What the reference left needs no write: its order of probes, its condition for a state that is not known, and its
// finalizer.
func TestTakeover(t *testing.T) {
	w := newWorld(t)
	m := markerOf("ppm", "web", "a", "b")
	m.Finalizers, m.Status = []string{v1alpha1.PodProbeMarkerFinalizerKey}, v1alpha1.PodProbeMarkerStatus{
		ObservedGeneration: 1, MatchedPods: 2,
	}
	pods := []*corev1.Pod{podOf("web-0", "node-1", "web"), podOf("web-1", "node-1", "web")}
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	for _, i := range []int{1, 0} {
		entry := v1alpha1.PodProbe{Name: pods[i].Name, Namespace: "shop", UID: string(pods[i].UID), IP: "10.0.0.1"}
		report := v1alpha1.PodProbeStatus{Name: pods[i].Name, Namespace: "shop", UID: string(pods[i].UID)}
		for _, j := range []int{1, 0} {
			p := m.Spec.Probes[j]
			entry.Probes = append(entry.Probes, v1alpha1.ContainerProbe{
				Name: "ppm#" + p.Name, ContainerName: "main", Probe: p.Probe,
			})
			report.ProbeStates = append(report.ProbeStates, v1alpha1.ContainerProbeState{
				Name: "ppm#" + p.Name, State: v1alpha1.ProbeFailed, LastProbeTime: metav1.NewTime(w.now),
			})
			pods[i].Status.Conditions = append(pods[i].Status.Conditions, corev1.PodCondition{
				Type: corev1.PodConditionType(p.PodConditionType), Status: corev1.ConditionFalse,
			})
			pods[i].Labels["ppm-"+p.Name] = "bad"
			pods[i].Annotations = map[string]string{"ppm-a": "bad", "ppm-b": "bad"}
		}
		npp.Spec.PodProbes, npp.Status.PodProbeStatuses = append(npp.Spec.PodProbes, entry),
			append(npp.Status.PodProbeStatuses, report)
	}
	report := &npp.Status.PodProbeStatuses[0].ProbeStates[0]
	report.State = v1alpha1.ProbeUnknown // for which the reference writes False
	w.put(nodeOf("node-1", nil), m, npp, pods[0], pods[1])
	w.good = nil
	nodes, ppms := w.names()
	for range 3 {
		for _, name := range nodes {
			_, _ = w.nodes.Reconcile(t.Context(), request(name))
		}
		for _, name := range ppms {
			_, _ = w.ppms.Reconcile(t.Context(), request(name))
		}
	}
	if got := w.writes(); len(got) != 0 {
		t.Errorf("the takeover wrote %v", got)
	}
}

// On virtual nodes the conditions are the provider's, and labels follow them if the gate is on, acceptance 22.
func TestServerless(t *testing.T) {
	for _, on := range []bool{true, false} {
		w := newWorld(t)
		w.options.Serverless = on
		w.boot()
		pod := podOf("web-0", "node-v", "web")
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: "example.com/ppm-idle", Status: corev1.ConditionFalse,
		})
		w.put(nodeOf("node-v", map[string]string{"type": "virtual-kubelet"}), pod, podOf("web-1", "node-v", "web"),
			markerOf("ppm", "web", "idle"))
		got, want, marks := w.still(), "ppm-idle=False app:web", 0
		if on {
			want, marks = "ppm-idle=False app:web ppm-idle:bad @ppm-idle:bad", 1
		}
		if is := w.shown()["web-0"]; is != want || count(got, "PATCH pods/") != marks || len(w.probes()) != 0 {
			t.Errorf("gate %t: %s, writes %v", on, is, got)
		}
		if m := w.allMarkers()[0]; m.Status.MatchedPods != 2 {
			t.Errorf("gate %t: %d pods", on, m.Status.MatchedPods)
		}
	}
}

// A pod that the API server does not let be marked holds up no other one, and is not tried again in a loop.
func TestRefusedPod(t *testing.T) {
	w := newWorld(t)
	w.put(nodeOf("node-1", nil), podOf("web-0", "node-1", "web"), podOf("web-1", "node-1", "web"),
		markerOf("ppm", "web", "idle"))
	w.turn()
	w.turn()
	refused := 0
	w.api.fault = func() (bool, error) {
		if refused++; refused == 1 {
			return false, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-0", nil)
		}
		return true, nil
	}
	if _, err := w.nodes.Reconcile(t.Context(), request(client.ObjectKey{Name: "node-1"})); err != nil {
		t.Errorf("a refusal is an error: %v", err)
	}
	marked := 0
	for _, text := range w.shown() {
		if strings.Contains(text, "ppm-idle=False") {
			marked++
		}
	}
	if marked != 1 || refused != 2 {
		t.Errorf("%d pods are marked with %d writes", marked, refused)
	}
}

// 1,000 probed pods on 100 nodes: two writes to set up each node, one for each pod and flip, none while nothing
// changes.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	const nodes, pods = 100, 10
	w := newWorld(t)
	w.put(markerOf("ppm", "web", "idle"))
	for i := range nodes {
		node := fmt.Sprintf("node-%03d", i)
		w.put(nodeOf(node, nil))
		for j := range pods {
			w.put(podOf(fmt.Sprintf("web-%03d-%02d", i, j), node, "web"))
		}
	}
	got := w.still()
	if n := count(got, "POST nodepodprobes"); n != nodes || count(got, "PATCH pods/") != nodes*pods ||
		len(got) != 2*nodes+nodes*pods+2 {
		t.Errorf("%d writes at first, of them %d creations and %d of pods", len(got), n, count(got, "PATCH pods/"))
	}
	if w.daemonWrites != nodes {
		t.Errorf("%d reports of daemons at first", w.daemonWrites)
	}
	w.boot()
	if got := w.still(); len(got) != 0 {
		t.Errorf("%d writes without a change, of a new manager: %v", len(got), got[:1])
	}
	w.daemonWrites = 0
	for i := range 25 {
		w.good[fmt.Sprintf("uid-web-%03d-07 ppm#idle", i*4)] = true
	}
	if got := w.still(); len(got) != 25 || count(got, "PATCH pods/") != 25 || w.daemonWrites != 25 {
		t.Errorf("25 flips cost %d writes and %d reports", len(got), w.daemonWrites)
	}
}

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

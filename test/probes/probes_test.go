package probes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

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

// 200 probed pods on 20 nodes: two writes to set up each node, one for each pod and flip, none while nothing changes.
func TestCost(t *testing.T) {
	const nodes, pods = 20, 10
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
	for i := range 5 {
		w.good[fmt.Sprintf("uid-web-%03d-07 ppm#idle", i*4)] = true
	}
	if got := w.still(); len(got) != 5 || count(got, "PATCH pods/") != 5 || w.daemonWrites != 5 {
		t.Errorf("5 flips cost %d writes and %d reports", len(got), w.daemonWrites)
	}
}

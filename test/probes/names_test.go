package probes

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Pods of one name in two namespaces run on one node, as the first pods of two StatefulSets do. The marks of one of
// them do not take the other one from the node.
func TestPodsOfOneName(t *testing.T) {
	w := newWorld(t)
	shop, bank := podOf("web-0", "node-1", "web"), podOf("web-0", "node-1", "web")
	bank.Namespace, bank.UID = "bank", "uid-bank"
	marker, other := markerOf("idle", "web", "idle"), markerOf("idle", "web", "idle")
	other.Namespace = "bank"
	w.put(nodeOf("node-1", nil), shop, bank, marker, other)
	w.still()
	for _, uid := range []types.UID{shop.UID, bank.UID} { // in turn, so that each is written after the other one
		w.good[string(uid)+" idle#idle"] = true
		w.still()
		probed := map[string]string{}
		for _, n := range w.probes() {
			for _, p := range n.Spec.PodProbes {
				probed[p.UID] = p.Namespace + "/" + p.Name
			}
		}
		if len(probed) != 2 || probed["uid-web-0"] != "shop/web-0" || probed["uid-bank"] != "bank/web-0" {
			t.Errorf("after a result of %s the node probes %v, want both pods", uid, probed)
		}
	}
	for _, pod := range w.pods() {
		if is := pod.Labels["idle-idle"]; is != "good" {
			t.Errorf("pod %s/%s shows %q, want good", pod.Namespace, pod.Name, is)
		}
	}
}

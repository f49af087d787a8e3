//go:build simulated

package simulated_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/test/cluster/simulated"
)

func TestNodes(t *testing.T) {
	w := newWorld(t, simulated.Config{Nodes: 2, NamePrefix: "n-", Labels: map[string]string{"pool": "a"}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	added, err := w.nodes.Add(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(added, []string{"n-2", "n-3"}) {
		t.Errorf("added %v", added)
	}
	node, err := w.CoreV1().Nodes().Get(ctx, "n-3", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if l := node.Labels; l["pool"] != "a" || l[corev1.LabelHostname] != "n-3" || l[corev1.LabelTopologyZone] != "zone-1" {
		t.Errorf("labels %v", l)
	}

	t.Run("a dead kubelet touches no pod, and does when it is back", func(t *testing.T) {
		w.create(t, podOf("here", func(p *corev1.Pod) { p.Spec.NodeName = "n-3" }))
		w.await(t, "here", ready)
		if err := w.nodes.SetReady(ctx, "n-3", false); err != nil {
			t.Fatal(err)
		}
		w.await(t, "here", func(p *corev1.Pod) bool { return !ready(p) })
		w.delete(t, "here")
		w.create(t, podOf("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "n-2" }))
		w.await(t, "elsewhere", ready)
		if err := w.nodes.SetReady(ctx, "n-3", true); err != nil {
			t.Fatal(err)
		}
		w.await(t, "here", func(*corev1.Pod) bool { return false })
	})

	if err := w.nodes.Remove(ctx, "n-0", "n-1"); err != nil {
		t.Fatal(err)
	}
	if names := w.nodes.Names(); !slices.Equal(names, []string{"n-2", "n-3"}) {
		t.Errorf("left %v", names)
	}
}

// A thousand nodes take a minute, and BenchmarkTenThousandPods has them.
func TestManyNodes(t *testing.T) {
	w := newWorld(t, simulated.Config{Nodes: 200})
	t.Logf("200 nodes were ready after %s", w.took.Round(time.Second/10))
	list, err := w.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	zones := map[string]int{}
	for i := range list.Items {
		zones[list.Items[i].Labels[corev1.LabelTopologyZone]]++
	}
	if len(list.Items) != 200 || zones["zone-1"] != 67 || zones["zone-2"] != 67 || zones["zone-3"] != 66 {
		t.Errorf("%d nodes, by zone %v", len(list.Items), zones)
	}
	w.create(t, podOf("one"))
	w.await(t, "one", ready)
}

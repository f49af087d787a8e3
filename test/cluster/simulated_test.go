//go:build nightly

package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestSimulatedNodesAreAsManyAsWanted(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Level: cluster.Simulated, Nodes: 20})
	var nodes corev1.NodeList
	if err := c.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 20 {
		t.Errorf("%d nodes, want 20", len(nodes.Items))
	}
}

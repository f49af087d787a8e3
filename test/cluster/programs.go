package cluster

import (
	"testing"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// Programs returns the paths of the programs of a subset, for a test that runs them in the cluster. Without them the
// test is skipped, or fails where KRUISEKIT_REQUIRE_CLUSTER=1.
func (*Cluster) Programs(t testing.TB, s binaries.Subset) map[string]string {
	t.Helper()
	programs, err := binaries.Open()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := programs.Paths(s)
	if err != nil {
		missing(t, err)
	}
	return paths
}

package cluster

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
)

// Needs skips the test where the API server is older than a minor version of Kubernetes 1, which serves a feature
// first. See KRUISEKIT_KUBERNETES in the README.
func (c *Cluster) Needs(t testing.TB, minor int, feature string) {
	t.Helper()
	if c.Minor(t) < minor {
		t.Skipf("%s needs Kubernetes 1.%d", feature, minor)
	}
}

// Minor returns the minor version of the API server.
func (c *Cluster) Minor(t testing.TB) int {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatalf("make client: %v", err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatalf("read version: %v", err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	if err != nil {
		t.Fatalf("read version %s: %v", version, err)
	}
	return minor
}

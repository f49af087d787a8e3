package cluster_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/test/cluster"
)

// README.md shows this. It is compiled, not run: it needs a cluster.
func Example() { //nolint:testableexamples // it needs a cluster
	scheme := runtime.NewScheme()
	_ = func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{CRDDirs: []string{"../../config/crd/bases"}, Scheme: scheme})
		namespace := c.Namespace(t) // of this test alone
		// c.Config, c.Client, c.Kubeconfig, c.Kubectl(ctx, "get", "pods"), c.InstallCRDs(ctx, dir)
		t.Log(namespace)
	}
}

//go:build e2e

package e2e

import (
	"os"
	"testing"

	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// testBare is what holds where no component of this project runs.
func testBare(t *testing.T, c *cluster.Cluster, p *programs) {
	for name, test := range map[string]func(*testing.T, *cluster.Cluster){
		"in place":               testInPlace,
		"resize beyond the node": testResizeBeyondTheNode,
		"embed":                  p.testEmbedExample,
		"native":                 testNative,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, c) })
	}
}

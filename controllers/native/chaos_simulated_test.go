//go:build simulated && !nightly

package native_test

import (
	"os"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// TestWithBuiltInControllers runs the reconciler beside the controllers of Kubernetes, while sets are rolled out,
// rolled back, scaled and handed over, pods are killed, and the manager is killed after any write.
func TestWithBuiltInControllers(t *testing.T) { runChaos(t, 1, 25*time.Second) }

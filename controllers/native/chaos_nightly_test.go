//go:build nightly

package native_test

import (
	"os"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// TestWithBuiltInControllersForLong is TestWithBuiltInControllers at greater depth.
func TestWithBuiltInControllersForLong(t *testing.T) {
	for seed := range uint64(3) {
		runChaos(t, 100+seed, 3*time.Minute)
	}
}

//go:build envtest || simulated

package command_test

import (
	"os"
	"testing"

	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

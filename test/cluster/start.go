package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/nodes"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
	"github.com/kruisekit/kruisekit/test/cluster/simulated"
)

// SharedVariable names the environment variable with the kubeconfig of the control plane that a run of several test
// processes shares. See Hold.
const SharedVariable = "KRUISEKIT_SHARED_PLANE"

// missing skips the test where the level cannot run, and fails it on other errors or where the level is required.
func missing(t testing.TB, err error) {
	t.Helper()
	lacking := errors.Is(err, binaries.ErrMissing) || errors.Is(err, nodes.ErrUnavailable)
	if lacking && os.Getenv("KRUISEKIT_REQUIRE_CLUSTER") != "1" {
		t.Skipf("no test cluster: %v", err)
	}
	t.Fatalf("no test cluster: %v", err)
}

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

// start returns the kubeconfig of a cluster of the wanted level, and the URL of etcd where the control plane is
// private.
func start(ctx context.Context, t testing.TB, programs binaries.Cache, o Options) (kubeconfig, etcd string, err error) {
	t.Helper()
	switch {
	case len(o.APIServerFlags) > 0 && !o.Private:
		err = errors.New("only a private control plane can have flags of its own")
	case o.Level == Real:
		kubeconfig, err = attach(ctx, t, programs)
	case o.Level == Simulated:
		kubeconfig, err = simulate(ctx, t, programs, o)
	case o.Private || runtime.GOOS != "linux": // elsewhere programs do not die with the test process
		return private(ctx, t, programs, o)
	case os.Getenv(SharedVariable) != "":
		kubeconfig = os.Getenv(SharedVariable)
	default:
		kubeconfig, err = ofProcess()
	}
	return kubeconfig, "", err
}

// ofProcess starts the control plane that the tests of this process share. It dies with the process.
//
//nolint:gochecknoglobals // one for the process
var ofProcess = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	kubeconfig, _, err := Hold(ctx)
	return kubeconfig, err
})

// Hold starts a control plane that lives until release, or until this process ends. A run of many packages passes its
// kubeconfig to the test processes in SharedVariable. The error is [binaries.ErrMissing] without the programs.
func Hold(ctx context.Context) (kubeconfig string, release func() error, err error) {
	programs, err := binaries.Open()
	if err != nil {
		return "", nil, err
	}
	assets, err := programs.Assets()
	if err != nil {
		return "", nil, err
	}
	dir := programs.State("planes")
	clearEnded(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("make the state directory: %w", err)
	}
	if dir, err = os.MkdirTemp(dir, "plane-"); err != nil {
		return "", nil, fmt.Errorf("make the state directory: %w", err)
	}
	p, err := plane.Start(ctx, plane.Config{Dir: dir, Programs: assets, Bound: true})
	if err != nil {
		return "", nil, err
	}
	return p.Kubeconfig, func() error { return errors.Join(p.Stop(), os.RemoveAll(dir)) }, nil
}

// clearEnded removes the state of control planes that have died with their process.
func clearEnded(dir string) {
	all, _ := filepath.Glob(filepath.Join(dir, "*")) // the pattern is valid
	for _, one := range all {
		records, err := process.Records(plane.RecordDir(one))
		ended := err == nil && len(records) > 0 // a new one has no records yet
		for _, r := range records {
			ended = ended && !r.Alive()
		}
		if ended {
			_ = os.RemoveAll(one) // what another process removes at the same time is gone
		}
	}
}

func private(
	ctx context.Context, t testing.TB, programs binaries.Cache, o Options,
) (kubeconfig, etcd string, err error) {
	t.Helper()
	assets, err := programs.Assets()
	if err != nil {
		return "", "", err
	}
	p, err := plane.Start(ctx, plane.Config{
		Dir: filepath.Join(t.TempDir(), "plane"), Programs: assets, Bound: true, APIServerFlags: o.APIServerFlags,
	})
	if err != nil {
		return "", "", err
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return p.Kubeconfig, p.Etcd, nil
}

func simulate(ctx context.Context, t testing.TB, programs binaries.Cache, o Options) (string, error) {
	t.Helper()
	paths, err := programs.Paths(binaries.Simulated)
	if err != nil {
		return "", err
	}
	c, err := simulated.Start(ctx, simulated.Config{
		Dir: t.TempDir(), Programs: paths, Nodes: o.Nodes, APIServerFlags: o.APIServerFlags,
	})
	if err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop the simulated cluster: %v", err)
		}
	})
	return c.Plane.Kubeconfig, nil
}

// startTimeout bounds a start: the machine may be busy with compiling.
const startTimeout = 5 * time.Minute

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/internal/keeper"
	"github.com/kruisekit/kruisekit/test/cluster/internal/launch"
	"github.com/kruisekit/kruisekit/test/cluster/nodes"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// sharing stands on locks and session leaders that are tried on Linux only.
const sharing = runtime.GOOS == "linux"

// linger is how long a shared control plane outlives its last user: packages of one `go test ./...` may follow each
// other.
const linger = 10 * time.Second

// missing skips the test where the level cannot run, and fails it on other errors or where the level is required.
func missing(t testing.TB, err error) {
	t.Helper()
	lacking := errors.Is(err, binaries.ErrMissing) || errors.Is(err, nodes.ErrUnavailable)
	if lacking && os.Getenv("KRUISEKIT_REQUIRE_CLUSTER") != "1" {
		t.Skipf("no test cluster: %v", err)
	}
	t.Fatalf("no test cluster: %v", err)
}

// start returns the kubeconfig of a cluster of the wanted level, and the URL of etcd where the control plane is
// private.
func start(ctx context.Context, t testing.TB, programs binaries.Cache, o Options) (kubeconfig, etcd string, err error) {
	t.Helper()
	if len(o.APIServerFlags) > 0 && !o.Private {
		return "", "", errors.New("only a private control plane can have flags of its own")
	}
	switch o.Level {
	case ControlPlane:
		assets, err := programs.Assets()
		if err != nil {
			return "", "", err
		}
		if o.Private || !sharing {
			return private(ctx, t, plane.Config{Programs: assets, APIServerFlags: o.APIServerFlags})
		}
		kubeconfig, err = shared(ctx, t, programs, launch.SharedDir(programs, assets))
		return kubeconfig, "", err
	case Simulated:
		kubeconfig, err = simulate(ctx, t, programs, o)
	case Real:
		kubeconfig, err = attach(ctx, t, programs)
	default:
		err = fmt.Errorf("unknown level %q", o.Level)
	}
	return kubeconfig, "", err
}

func shared(ctx context.Context, t testing.TB, programs binaries.Cache, dir string) (string, error) {
	t.Helper()
	lease, err := lease(ctx, programs, dir)
	if err != nil {
		return "", err
	}
	t.Cleanup(lease.Release)
	return lease.Kubeconfig, nil
}

func lease(ctx context.Context, programs binaries.Cache, dir string) (*keeper.Lease, error) {
	return launch.Attach(ctx, launch.Request{Dir: dir, Idle: linger}, func() (string, error) {
		return launch.Executable(ctx, programs, dir)
	})
}

// Hold starts the shared control plane, if it does not run, and keeps it until release: for a run of many packages,
// which are compiled in between for longer than an unused control plane lives. It returns [binaries.ErrMissing] without
// the programs, and does nothing where control planes are not shared.
func Hold(ctx context.Context) (release func(), err error) {
	if !sharing {
		return func() {}, nil
	}
	programs, err := binaries.Open()
	if err != nil {
		return nil, err
	}
	assets, err := programs.Assets()
	if err != nil {
		return nil, err
	}
	lease, err := lease(ctx, programs, launch.SharedDir(programs, assets))
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

func private(ctx context.Context, t testing.TB, config plane.Config) (kubeconfig, etcd string, err error) {
	t.Helper()
	p, err := privatePlane(ctx, t, config)
	if err != nil {
		return "", "", err
	}
	return p.Kubeconfig, p.Etcd, nil
}

func privatePlane(ctx context.Context, t testing.TB, config plane.Config) (*plane.Plane, error) {
	t.Helper()
	config.Dir, config.Bound = filepath.Join(t.TempDir(), "plane"), true
	p, err := plane.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return p, nil
}

func simulate(ctx context.Context, t testing.TB, programs binaries.Cache, o Options) (string, error) {
	t.Helper()
	config, err := launch.SimulatedPlane(programs)
	if err != nil {
		return "", err
	}
	config.APIServerFlags = o.APIServerFlags
	p, err := privatePlane(ctx, t, config)
	if err != nil {
		return "", err
	}
	added, err := launch.Simulate(ctx, p, launch.Simulation{
		Kwok: config.Programs["kwok"], Dir: filepath.Dir(p.Kubeconfig), Nodes: o.Nodes,
	})
	if err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := added.Stop(); err != nil {
			t.Errorf("stop the simulated nodes: %v", err)
		}
	})
	return p.Kubeconfig, nil
}

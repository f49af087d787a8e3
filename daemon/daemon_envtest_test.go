//go:build envtest

package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/rig/critest"
)

// recorded is a part that only says how it was set up.
type recorded struct {
	workers *[]int
	err     error
}

func (r recorded) SetupWithManager(_ context.Context, _ ctrl.Manager, o controller.Options) error {
	*r.workers = append(*r.workers, o.MaxConcurrentReconciles)
	return r.err
}

func start(t *testing.T) *cluster.Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return cluster.Start(t, cluster.Options{Scheme: scheme, CRDDirs: []string{
		"../config/crd/bases/apps.kruise.io_nodeimages.yaml",
		"../config/crd/bases/apps.kruise.io_containerrecreaterequests.yaml",
		"../config/crd/bases/apps.kruise.io_nodepodprobes.yaml",
	}})
}

func node(t *testing.T, name string) Node {
	t.Helper()
	dir := t.TempDir()
	critest.Serve(t, filepath.Join(dir, "containerd.sock"))
	runtimes, err := cri.Detect(t.Context(), cri.Search{Root: dir}, cri.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runtimes.Close() })
	return Node{Name: name, Runtimes: runtimes}
}

func newManager(t *testing.T, c *cluster.Cluster, name string, o Options) ctrl.Manager {
	t.Helper()
	mo, err := ManagerOptions(name, o)
	if err != nil {
		t.Fatal(err)
	}
	mo.Metrics = metricsserver.Options{BindAddress: "0"}
	mgr, err := ctrl.NewManager(c.Config, mo)
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

func TestAdd(t *testing.T) {
	c, n := start(t), node(t, "node-a")
	mgr := newManager(t, c, n.Name, Options{})
	var workers []int
	one := func(name string, object client.Object, err error) part {
		return part{name: name, object: object, make: func(ctrl.Manager, Node, Options) (reconciler, error) {
			return recorded{&workers, err}, nil
		}}
	}
	toaster := stored.Untyped(schema.GroupVersionKind{Group: "kitchen.example.com", Version: "v1", Kind: "Toaster"})
	pods := one("pods", &corev1.Pod{}, nil)
	all := []part{one("in", &appsv1beta1.NodeImage{}, nil), one("missing", toaster, nil), pods}
	o := Options{Controller: func(name string) controller.Options {
		return controller.Options{MaxConcurrentReconciles: len(name)}
	}}

	if err := add(t.Context(), mgr, target{n, o, all}); err != nil {
		t.Fatal(err)
	}
	all[2].skip = "pods are not watched"
	if err := add(t.Context(), mgr, target{n, o, all}); err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 4, 2}; !slices.Equal(workers, want) {
		t.Errorf("set up with %v, want %v: those whose kinds are installed, and pods once", workers, want)
	}
	broken := errors.New("broken")
	if err := add(t.Context(), mgr, target{n, o, []part{one("in", &corev1.Pod{}, broken)}}); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of the part", err)
	}
	for _, of := range []Node{{}, {Name: "node-a"}, {Name: "node-a", Runtimes: &cri.Runtimes{}}, {Runtimes: n.Runtimes}} {
		if err := AddToManager(t.Context(), mgr, of, Options{}); err == nil {
			t.Errorf("%+v is accepted", of)
		}
	}
}

func TestRuntimeCheck(t *testing.T) {
	dir := t.TempDir()
	served := critest.Serve(t, filepath.Join(dir, "containerd.sock"))
	runtimes, err := cri.Detect(t.Context(), cri.Search{Root: dir}, cri.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runtimes.Close() })
	check := connected(runtimes)
	if err := check(nil); err != nil {
		t.Error(err)
	}
	served.Stop()
	cluster.Eventually(t, func(context.Context) error {
		if err := check(nil); !errors.Is(err, errNotConnected) || !strings.Contains(err.Error(), "containerd.sock") {
			return fmt.Errorf("without a runtime: %w", errors.Join(errors.New("want another error"), err))
		}
		return nil
	})
	served.Start()
	cluster.Eventually(t, func(context.Context) error { return check(nil) })
}

func run(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
}

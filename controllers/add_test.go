//go:build envtest

package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/test/cluster"
)

// recorded is a reconciler that only says how it was set up.
type recorded struct {
	workers *[]int
	err     error
}

func (r recorded) SetupWithManager(_ context.Context, _ ctrl.Manager, o controller.Options) error {
	*r.workers = append(*r.workers, o.MaxConcurrentReconciles)
	return r.err
}

func TestAdd(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	mo, err := ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	mo.Metrics = metricsserver.Options{BindAddress: "0"}
	mgr, err := ctrl.NewManager(c.Config, mo)
	if err != nil {
		t.Fatal(err)
	}
	var workers []int
	one := func(name string, kind schema.GroupVersionKind, err error) entry {
		return entry{name, kind, func(client.Client) (reconciler, error) { return recorded{&workers, err}, nil }}
	}
	pods := corev1.SchemeGroupVersion.WithKind("Pod")
	toasters := schema.GroupVersionKind{Group: "kitchen.example.com", Version: "v1", Kind: "Toaster"}
	o := &Options{Names: []string{"*", "-out"}, Controller: func(name string) controller.Options {
		return controller.Options{MaxConcurrentReconciles: len(name)}
	}}
	all := []entry{one("in", pods, nil), one("missing", toasters, nil), one("out", pods, nil), one("last", pods, nil)}
	if err := add(t.Context(), mgr, o, all); err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 4}; !slices.Equal(workers, want) {
		t.Errorf("set up with %v, want %v: those chosen whose kinds are installed", workers, want)
	}
	broken := errors.New("broken")
	if err := add(t.Context(), mgr, &Options{}, []entry{one("in", pods, broken)}); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of the reconciler", err)
	}
}

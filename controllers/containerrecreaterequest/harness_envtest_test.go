//go:build envtest

package containerrecreaterequest_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/controllers/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with something that runs its pods.
type bench struct {
	*podbench.Bench

	node *node
}

// start runs a test with others at the same time, in a namespace with a reconciler and a daemon.
func start(t *testing.T) (*bench, *node) {
	t.Helper()
	b := newBench(t)
	b.reconcile(containerrecreaterequest.Options{}, plain)
	b.node.serve()
	return b, b.node
}

// newBench has neither reconciler nor daemon yet, but a kubelet.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{Bench: podbench.New(t, cluster.Options{CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_containerrecreaterequests.yaml",
	}})}
	b.node = newNode(b)
	return b
}

// plain is the client of a reconciler as it is.
func plain(c client.WithWatch) client.Client { return c }

// reconcile starts a reconciler of the namespace, and gives what stops it. It stops with the test at the latest.
func (b *bench) reconcile(o containerrecreaterequest.Options, wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := containerrecreaterequest.New(wrap(c), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 3})
	})
}

// ahead are the options of a reconciler whose clock is so much ahead.
func ahead(d time.Duration) containerrecreaterequest.Options {
	return containerrecreaterequest.Options{Now: func() time.Time { return time.Now().Add(d) }}
}

// becomes waits for a request to be as wanted.
func (b *bench) becomes(r *request, check func(*request) error) {
	b.Helper()
	b.Until(func() error {
		fresh := r.DeepCopy()
		if err := b.Look(fresh); err != nil {
			return err
		}
		*r = *fresh
		if err := check(r); err != nil {
			return fmt.Errorf("%s: %w; status %+v", r.Name, err, r.Status)
		}
		return nil
	})
}

// goes waits for an object to be gone.
func (b *bench) goes(o client.Object) {
	b.Helper()
	b.Until(func() error {
		switch err := b.Look(o); {
		case err == nil:
			return fmt.Errorf("%s is there, with finalizers %v", o.GetName(), o.GetFinalizers())
		case client.IgnoreNotFound(err) != nil:
			return err
		}
		return nil
	})
}

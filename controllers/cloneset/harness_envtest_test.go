//go:build envtest

package cloneset_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/standin"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace of an API server with a kubelet, and with a reconciler once a test has started it.
type bench struct {
	user

	kit *podbench.Bench
}

// start runs a test beside others, with a reconciler.
func start(t *testing.T, o cloneset.Options) *bench {
	t.Helper()
	return startWith(t, o, plain)
}

// startWith gives the reconciler another client.
func startWith(t *testing.T, o cloneset.Options, wrap func(client.WithWatch) client.WithWatch) *bench {
	t.Helper()
	t.Parallel()
	b := newBench(t)
	b.reconcile(o, wrap)
	return b
}

// plain is the client as it is.
func plain(c client.WithWatch) client.WithWatch { return c }

// newBench starts no reconciler.
func newBench(t *testing.T) *bench {
	t.Helper()
	const bases = "../../config/crd/bases/apps.kruise.io_"
	kit := podbench.New(t, cluster.Options{CRDDirs: []string{bases + "clonesets.yaml", bases + "imagepulljobs.yaml"}})
	kit.Beside(func(mgr ctrl.Manager) error {
		kubelet := &standin.Kubelet{
			Client: mgr.GetClient(), Namespace: kit.Namespace, Node: "node-1",
			Broken:  func(image string) bool { return strings.HasSuffix(image, ":broken") },
			Unready: func(pod *corev1.Pod) bool { _, is := pod.Annotations[unready]; return is },
		}
		return kubelet.SetupWithManager(mgr)
	})
	return &bench{user: user{T: t, client: kit.Client, namespace: kit.Namespace}, kit: kit}
}

// reconcile starts a reconciler of the namespace, and returns a function that stops it. It stops with the test at the
// latest.
func (b *bench) reconcile(o cloneset.Options, wrap func(client.WithWatch) client.WithWatch) (stop func()) {
	b.Helper()
	return b.kit.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := cloneset.New(wrap(c), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

// asked returns the requests of the reconciler since the last call.
func (b *bench) asked() []string { return b.kit.Asked() }

// still waits until the reconciler has nothing left to do.
func (b *bench) still() {
	b.Helper()
	b.kit.Still()
}

// eventually waits until the set is as expected.
func (b *bench) eventually(set *v1beta1.CloneSet, check check) {
	b.Helper()
	b.kit.Until(func() error {
		b.look(set)
		return check(set, b.pods(set))
	})
}

// stays expects a set when nothing is left to do.
func (b *bench) stays(set *v1beta1.CloneSet, check check) {
	b.Helper()
	b.still()
	b.look(set)
	if err := check(set, b.pods(set)); err != nil {
		b.Error(err)
	}
}

var errNoEvent = errors.New("no event")

// emits expects an event of a reason about the set.
func (b *bench) emits(reason string) check {
	return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if len(b.kit.Events(set, reason)) == 0 {
			return errNoEvent
		}
		return nil
	}
}

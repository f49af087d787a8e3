//go:build envtest

package imagelistpulljob_test

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagelistpulljob"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with a reconciler.
type bench struct {
	*podbench.Bench

	ahead atomic.Int64
}

func start(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.start(func(c client.WithWatch) client.WithWatch { return c })
	return b
}

// newBench has no reconciler yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	return &bench{Bench: podbench.New(t, cluster.Options{CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_imagelistpulljobs.yaml",
		"../../config/crd/bases/apps.kruise.io_imagepulljobs.yaml",
	}})}
}

// now is the time of the reconciler, which the test puts ahead.
func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }

// start starts a reconciler with a client of its own, and returns a function that stops it. It stops with the test at
// the latest.
func (b *bench) start(wrap func(client.WithWatch) client.WithWatch) (stop func()) {
	b.Helper()
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := imagelistpulljob.New(wrap(c), imagelistpulljob.Options{Now: b.now})
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

// create makes a list of images, and what change adds.
func (b *bench) create(
	name string, images []string, change ...func(*v1beta1.ImageListPullJob),
) *v1beta1.ImageListPullJob {
	b.Helper()
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
	list.Spec.Images = images
	for _, c := range change {
		c(list)
	}
	if err := b.Client.Create(b.Context(), list); err != nil {
		b.Fatal(err)
	}
	return list
}

// change patches the list as it is now.
func (b *bench) change(list *v1beta1.ImageListPullJob, how func(*v1beta1.ImageListPullJob)) {
	b.Helper()
	b.refresh(list)
	before := list.DeepCopy()
	how(list)
	if err := b.Client.Patch(b.Context(), list, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) refresh(o client.Object) {
	b.Helper()
	if err := b.Look(o); err != nil {
		b.Fatal(err)
	}
}

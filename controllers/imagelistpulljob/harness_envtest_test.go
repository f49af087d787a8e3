//go:build envtest

package imagelistpulljob_test

import (
	"os"
	"testing"

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
type bench struct{ *podbench.Bench }

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
	return &bench{podbench.New(t, cluster.Options{CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_imagelistpulljobs.yaml",
		"../../config/crd/bases/apps.kruise.io_imagepulljobs.yaml",
	}})}
}

// start starts a reconciler with a client of its own.
func (b *bench) start(wrap func(client.WithWatch) client.WithWatch) {
	b.Helper()
	b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := imagelistpulljob.New(wrap(c), imagelistpulljob.Options{})
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

//go:build envtest

package imagelistpulljob_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagelistpulljob"
	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with a reconciler.
type bench struct {
	*testing.T

	client    client.Client
	config    *rest.Config
	scheme    *runtime.Scheme
	namespace string
	requests  *requests
	ahead     atomic.Int64
}

func start(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.start(func(c client.WithWatch) client.Client { return c })
	return b
}

// newBench has no reconciler yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, cluster.Options{Scheme: scheme, CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_imagelistpulljobs.yaml", "../../config/crd/bases/apps.kruise.io_imagepulljobs.yaml",
	}})
	return &bench{T: t, client: c.Client, config: c.Config, scheme: scheme, namespace: c.Namespace(t), requests: &requests{}}
}

// now is the time of the reconciler, which the test puts ahead.
func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }

// start starts a reconciler with a client of its own, and gives what stops it. It stops with the test at the latest.
func (b *bench) start(wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	counted := rest.CopyConfig(b.config)
	counted.QPS = -1
	counted.Wrap(b.requests.through)
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: b.scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	watching, err := client.NewWithWatch(counted, client.Options{Scheme: b.scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache()}})
	if err != nil {
		b.Fatal(err)
	}
	r, err := imagelistpulljob.New(wrap(watching), imagelistpulljob.Options{Now: b.now})
	if err != nil {
		b.Fatal(err)
	}
	if err := r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(stop)
	return stop
}

// create makes a list of images, and what change adds.
func (b *bench) create(name string, images []string, change ...func(*v1beta1.ImageListPullJob)) *v1beta1.ImageListPullJob {
	b.Helper()
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	list.Spec.Images = images
	for _, c := range change {
		c(list)
	}
	if err := b.client.Create(b.Context(), list); err != nil {
		b.Fatal(err)
	}
	return list
}

// change reads the list anew and patches it.
func (b *bench) change(list *v1beta1.ImageListPullJob, how func(*v1beta1.ImageListPullJob)) {
	b.Helper()
	b.refresh(list)
	before := list.DeepCopy()
	how(list)
	if err := b.client.Patch(b.Context(), list, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) refresh(o client.Object) {
	b.Helper()
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		b.Fatal(err)
	}
}

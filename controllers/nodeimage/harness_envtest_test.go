//go:build envtest

package nodeimage_test

import (
	"context"
	"net/http"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// Nodes have no namespace, so that the tests have a control plane of their own, and each its own label.
func TestNodeImages(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: scheme, CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_nodeimages.yaml", "../../config/crd/bases/apps.kruise.io_imagepulljobs.yaml",
	}})
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&bench{T: t, client: c.Client, config: c.Config, scheme: scheme, namespace: c.Namespace(t), requests: &requests{}, passes: &passes{}, clock: &clock{}})
		})
	}
}

// bench is what one test works at.
type bench struct {
	*testing.T

	client    client.Client
	config    *rest.Config
	scheme    *runtime.Scheme
	namespace string
	requests  *requests
	passes    *passes
	clock     *clock
	// mapper knows the kinds that are installed; nil for all that are.
	mapper meta.RESTMapper
}

// benchKey is the label of the nodes of one test.
const benchKey = "test.kruisekit.dev/bench"

// start starts a reconciler of the test's nodes, and gives what stops it. Nodes get their NodeImage at once unless the options
// say something else.
func (b *bench) start(o nodeimage.Options) (stop func()) {
	b.Helper()
	return b.startWith(o, func(c client.WithWatch) client.Client { return c })
}

// startWith gives the reconciler a client of another kind.
func (b *bench) startWith(o nodeimage.Options, wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	b.setDefaults(&o)
	counted := rest.CopyConfig(b.config)
	counted.QPS = -1
	counted.Wrap(b.requests.through)
	return b.run(counted, func(mgr ctrl.Manager) error {
		watching, err := client.NewWithWatch(counted, client.Options{Scheme: b.scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache()}})
		if err != nil {
			return err
		}
		r, err := nodeimage.New(wrap(watching), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

func (b *bench) setDefaults(o *nodeimage.Options) {
	if o.CreationDelay == 0 {
		o.CreationDelay = -1
	}
	o.Now, o.Explain = b.clock.now, b.passes.note
}

// run starts a manager that sees the nodes of the test, and ends with it, or when it is stopped.
func (b *bench) run(config *rest.Config, add func(ctrl.Manager) error) (stop func()) {
	b.Helper()
	mine := labels.SelectorFromSet(labels.Set{benchKey: b.namespace})
	var provide func(*rest.Config, *http.Client) (meta.RESTMapper, error)
	if b.mapper != nil {
		provide = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return b.mapper, nil }
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		MapperProvider: provide,
		Scheme:         b.scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{b.namespace: {}},
			ByObject:          map[client.Object]cache.ByObject{&corev1.Node{}: {Label: mine}, &v1beta1.NodeImage{}: {Label: mine}},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := add(mgr); err != nil {
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

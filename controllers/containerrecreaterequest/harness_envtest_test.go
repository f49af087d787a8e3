//go:build envtest

package containerrecreaterequest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/requests"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with something that runs its pods.
type bench struct {
	*testing.T

	client    client.Client
	config    *rest.Config
	scheme    *runtime.Scheme
	namespace string
	requests  *requests.Recorder
	node      *node
	// patience is how long until waits.
	patience time.Duration
}

// start runs a test with others at the same time, in a namespace with a reconciler and a daemon.
func start(t *testing.T) (*bench, *node) {
	t.Helper()
	t.Parallel()
	b := newBench(t)
	b.reconcile(containerrecreaterequest.Options{}, plain)
	b.node.serve()
	return b, b.node
}

// newBench has neither reconciler nor daemon yet, but a kubelet.
func newBench(t *testing.T) *bench {
	t.Helper()
	return benchIn(t, cluster.Start(t, cluster.Options{CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_containerrecreaterequests.yaml",
	}}))
}

func benchIn(t *testing.T, c *cluster.Cluster) *bench {
	t.Helper()
	scheme := schemeOf(t, clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme)
	live, err := client.New(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	namespace := c.Namespace(t)
	b := &bench{
		T: t, client: live, config: c.Config, scheme: scheme, namespace: namespace,
		requests: &requests.Recorder{Namespace: namespace}, patience: 2 * time.Minute,
	}
	b.node = newNode(b)
	return b
}

// in is the same for a part of the test.
func (b *bench) in(t *testing.T) *bench {
	part := *b
	part.T = t
	return &part
}

// plain is the client of a reconciler as it is.
func plain(c client.WithWatch) client.Client { return c }

func schemeOf(t *testing.T, groups ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range groups {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// reconcile starts a reconciler of the namespace, and gives what stops it. It stops with the test at the latest.
func (b *bench) reconcile(o containerrecreaterequest.Options, wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	counted := rest.CopyConfig(b.config)
	counted.QPS = -1
	counted.Wrap(b.requests.Wrap)
	return b.run(counted, func(mgr ctrl.Manager) error {
		watching, err := client.NewWithWatch(counted, client.Options{
			Scheme: b.scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache()},
		})
		if err != nil {
			return err
		}
		r, err := containerrecreaterequest.New(wrap(watching), o)
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

// run starts a manager of the namespace that ends with the test, or when it is stopped.
func (b *bench) run(config *rest.Config, add func(ctrl.Manager) error) (stop func()) {
	b.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: b.scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
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

// until waits for something to be so.
func (b *bench) until(check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 50*time.Millisecond, b.patience, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		})
	if err != nil {
		b.Fatalf("%v; last: %v\nrequests:\n%s", err, last, strings.Join(b.requests.Take(), "\n"))
	}
}

// look reads an object as it is now.
func (b *bench) look(o client.Object) error {
	return b.client.Get(b.Context(), client.ObjectKeyFromObject(o), o)
}

// becomes waits for a request to be as wanted.
func (b *bench) becomes(r *request, check func(*request) error) {
	b.Helper()
	b.until(func() error {
		fresh := r.DeepCopy()
		if err := b.look(fresh); err != nil {
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
	b.until(func() error {
		switch err := b.look(o); {
		case err == nil:
			return fmt.Errorf("%s is there, with finalizers %v", o.GetName(), o.GetFinalizers())
		case client.IgnoreNotFound(err) != nil:
			return err
		}
		return nil
	})
}

// events of a reason about a request.
func (b *bench) events(r *request, reason string) []string {
	b.Helper()
	var list corev1.EventList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	var texts []string
	for _, e := range list.Items {
		if e.InvolvedObject.UID == r.UID && e.Reason == reason {
			texts = append(texts, fmt.Sprintf("%s (%d)", e.Message, max(e.Count, 1)))
		}
	}
	return texts
}

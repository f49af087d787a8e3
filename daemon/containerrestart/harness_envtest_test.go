//go:build envtest

package containerrestart_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	pure "github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/containerrestart"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/requests"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 16)) }

// bench is a namespace with a node of its own, and with what does the manager's part.
type bench struct {
	*testing.T

	client    client.WithWatch
	config    *rest.Config
	scheme    *runtime.Scheme
	namespace string
	node      *nodetest.Node
	nodeName  string
	requests  *requests.Recorder
}

type ways = map[string]nodetest.Way

// start runs a test with others at the same time, with a daemon on the node.
func start(t *testing.T, w ways, o containerrestart.Options) *bench {
	t.Helper()
	t.Parallel()
	b := newBench(t, w)
	b.daemon(o, b.restricted())
	return b
}

// newBench has no daemon yet.
func newBench(t *testing.T, w ways) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, cluster.Options{CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_containerrecreaterequests.yaml",
	}})
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	live, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	namespace := c.Namespace(t)
	b := &bench{
		T:         t,
		client:    live,
		config:    config,
		scheme:    scheme,
		namespace: namespace,
		requests:  &requests.Recorder{Namespace: namespace},
	}
	b.nodeName = "node-" + b.namespace
	b.node = nodetest.New(b.nodeName, w)
	b.background(func(ctx context.Context) error { return b.node.Run(ctx, live, b.namespace) })
	b.background(b.supervise)
	return b
}

// background runs something until the test ends.
func (b *bench) background(run func(context.Context) error) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	})
	b.Cleanup(stop)
	return stop
}

// restricted is the cache of a daemon: what is of its node.
func (b *bench) restricted() cache.Options {
	return cache.Options{
		DefaultNamespaces: map[string]cache.Config{b.namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.nodeName", b.nodeName)},
			&v1beta1.ContainerRecreateRequest{}: {Label: labels.SelectorFromSet(labels.Set{
				v1beta1.ContainerRecreateRequestNodeNameKey: b.nodeName, v1beta1.ContainerRecreateRequestActiveKey: "true",
			})},
		},
	}
}

// daemon starts one, and gives what ends it.
func (b *bench) daemon(o containerrestart.Options, seen cache.Options) (stop func()) {
	b.Helper()
	counted := rest.CopyConfig(b.config)
	counted.Wrap(b.requests.Wrap)
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: b.scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Cache: seen,
	})
	if err != nil {
		b.Fatal(err)
	}
	r, err := containerrestart.New(mgr.GetClient(), b.nodeName, []*nodetest.Node{b.node}, o)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.SetupWithManager(b.Context(), mgr, controller.Options{}); err != nil {
		b.Fatal(err)
	}
	return b.background(mgr.Start)
}

// supervise does what the package at the root says is the manager's part.
func (b *bench) supervise(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		all, err := b.all(ctx)
		if err != nil {
			return false, err
		}
		for _, r := range all {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Spec.PodName}}
			switch err := b.look(ctx, pod); {
			case client.IgnoreNotFound(err) != nil:
				return false, err
			case err != nil:
				pod = nil
			}
			plan := pure.Supervise(pure.Input{Request: r, Pod: pod, Others: all, Now: time.Now()})
			if err := b.carryOut(ctx, r, pod, plan); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return false, err
			}
		}
		return false, nil
	})
}

// all are the requests of the namespace that can be read.
func (b *bench) all(ctx context.Context) ([]*request, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ContainerRecreateRequestList"))
	if err := b.client.List(ctx, list, client.InNamespace(b.namespace)); err != nil {
		return nil, err
	}
	var all []*request
	for i := range list.Items {
		if one, malformed, err := stored.Decode[request](&list.Items[i]); err == nil && malformed == nil {
			all = append(all, one)
		}
	}
	return all, nil
}

func (b *bench) carryOut(ctx context.Context, r *request, pod *corev1.Pod, plan pure.Plan) error {
	if plan.AddFinalizer {
		r.Finalizers = append(r.Finalizers, v1beta1.ContainerRecreateRequestUnreadyAcquiredKey)
		return b.client.Update(ctx, r)
	}
	if plan.Pod != nil {
		body, err := plan.Pod.Data()
		if err != nil {
			return err
		}
		if err := b.client.SubResource(plan.Pod.Subresource).Patch(ctx, pod.DeepCopy(),
			client.RawPatch(plan.Pod.Type, body)); err != nil {
			return err
		}
	}
	if plan.Write != nil {
		body, err := plan.Write.Data()
		if err != nil {
			return err
		}
		return b.client.Status().Patch(ctx, r, client.RawPatch(types.MergePatchType, body))
	}
	if plan.RemoveFinalizer || plan.RemoveActive {
		if plan.RemoveFinalizer {
			r.Finalizers = nil
		}
		if plan.RemoveActive {
			delete(r.Labels, v1beta1.ContainerRecreateRequestActiveKey)
		}
		return b.client.Update(ctx, r)
	}
	if plan.Delete {
		return b.client.Delete(ctx, r)
	}
	return nil
}

// look reads an object as it is now.
func (b *bench) look(ctx context.Context, o client.Object) error {
	return b.client.Get(ctx, client.ObjectKeyFromObject(o), o)
}

// until waits for something to be so.
func (b *bench) until(check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		})
	if err != nil {
		b.Fatalf("%v; last: %v\nrequests:\n%s", err, last, strings.Join(b.requests.Take(), "\n"))
	}
}

var errNotYet = errors.New("not yet")

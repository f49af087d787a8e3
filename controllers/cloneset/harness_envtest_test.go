//go:build envtest

package cloneset_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/standin"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with a reconciler and something that runs its pods.
type bench struct {
	*testing.T

	client    client.Client
	config    *rest.Config
	scheme    *runtime.Scheme
	namespace string
	requests  *requests
	// patience is how long eventually waits.
	patience time.Duration
}

// unready is the annotation of a pod that the stand-in of the kubelet keeps from being ready.
const unready = "test.kruisekit.dev/unready"

// start runs a test with others at the same time.
func start(t *testing.T, o cloneset.Options) *bench {
	t.Helper()
	return startWith(t, o, func(c client.WithWatch) client.Client { return c })
}

// startWith gives the reconciler a client of another kind.
func startWith(t *testing.T, o cloneset.Options, wrap func(client.WithWatch) client.Client) *bench {
	t.Helper()
	t.Parallel()
	b := newBench(t)
	b.reconcile(o, wrap)
	return b
}

// newBench has no reconciler yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, cluster.Options{Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_clonesets.yaml", "../../config/crd/bases/apps.kruise.io_imagepulljobs.yaml"}})
	b := &bench{T: t, client: c.Client, config: c.Config, scheme: scheme, namespace: c.Namespace(t), requests: &requests{}, patience: 2 * time.Minute}
	b.run(c.Config, func(mgr ctrl.Manager) error {
		kubelet := &standin.Kubelet{
			Client: mgr.GetClient(), Namespace: b.namespace, Node: "node-1",
			Broken:  func(image string) bool { return strings.HasSuffix(image, ":broken") },
			Unready: func(pod *corev1.Pod) bool { _, is := pod.Annotations[unready]; return is },
		}
		return kubelet.SetupWithManager(mgr)
	})
	return b
}

// reconcile starts a reconciler of the namespace, and gives what stops it. It stops with the test at the latest.
func (b *bench) reconcile(o cloneset.Options, wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	counted := rest.CopyConfig(b.config)
	counted.QPS = -1
	counted.Wrap(b.requests.through)
	return b.run(counted, func(mgr ctrl.Manager) error {
		watching, err := client.NewWithWatch(counted, client.Options{Scheme: b.scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache()}})
		if err != nil {
			return err
		}
		r, err := cloneset.New(wrap(watching), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
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

// create makes a set with nothing but what is required, and what change adds.
func (b *bench) create(name string, replicas int32, change func(*v1beta1.CloneSet)) *v1beta1.CloneSet {
	b.Helper()
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	set.Spec.Replicas = &replicas
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	set.Spec.Template.Labels = map[string]string{"app": name}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	if change != nil {
		change(set)
	}
	if err := b.client.Create(b.Context(), set); err != nil {
		b.Fatal(err)
	}
	return set
}

func inPlace(set *v1beta1.CloneSet) {
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
	}
}

// change patches the set.
func (b *bench) change(set *v1beta1.CloneSet, how func(*v1beta1.CloneSet)) {
	b.Helper()
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		b.Fatal(err)
	}
	before := set.DeepCopy()
	how(set)
	if err := b.client.Patch(b.Context(), set, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// pods of the set that are not terminating.
func (b *bench) pods(set *v1beta1.CloneSet) []corev1.Pod {
	b.Helper()
	var list corev1.PodList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace), client.MatchingLabels{"app": set.Name}); err != nil {
		b.Fatal(err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// eventually waits for the set to be as wanted.
func (b *bench) eventually(set *v1beta1.CloneSet, check func(*v1beta1.CloneSet, []corev1.Pod) error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, b.patience, true, func(ctx context.Context) (bool, error) {
		if err := b.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return false, err
		}
		last = check(set, b.pods(set))
		return last == nil, nil
	})
	if err != nil {
		b.Fatalf("%v; last: %v\nstatus: %+v\nrequests:\n%s", err, last, set.Status, strings.Join(b.requests.last(), "\n"))
	}
}

// settled is a set whose status says that all is as wanted.
func settled(set *v1beta1.CloneSet, pods []corev1.Pod) error {
	s, replicas := set.Status, *set.Spec.Replicas
	if s.ObservedGeneration != set.Generation || s.Replicas != replicas || s.UpdatedReplicas != replicas || s.AvailableReplicas != replicas ||
		s.UpdatedReadyReplicas != replicas || s.CurrentRevision != s.UpdateRevision || int32(len(pods)) != replicas {
		return fmt.Errorf("%d pods, status %+v", len(pods), s)
	}
	return nil
}

// requests records what the reconciler asks of the API server, but for watches and leases.
type requests struct {
	mu  sync.Mutex
	all []string
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (r *requests) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) { return r.record(next, request) })
}

func (r *requests) record(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	response, err := next.RoundTrip(request)
	if request.URL.Query().Get("watch") != "" || request.Method == http.MethodGet && request.URL.Query().Get("limit") != "" {
		return response, err
	}
	code := 0
	if response != nil {
		code = response.StatusCode
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf("%s %s %d", request.Method, request.URL.Path, code))
	return response, err
}

// take gives the requests since the last time.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// last are the last few requests.
func (r *requests) last() []string {
	all := r.take()
	return all[max(len(all)-40, 0):]
}

// madePods is how many pods the reconciler has made in all.
func (b *bench) madePods() int {
	return len(about(b.requests.take(), "POST", "/pods 201"))
}

// about are the requests that hold all of some words, without events.
func about(all []string, words ...string) []string {
	var some []string
next:
	for _, request := range all {
		if strings.Contains(request, "/events") {
			continue
		}
		for _, word := range words {
			if !strings.Contains(request, word) {
				continue next
			}
		}
		some = append(some, request)
	}
	return some
}

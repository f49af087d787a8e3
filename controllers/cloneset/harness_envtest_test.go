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

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// bench is a namespace with a reconciler and something that runs its pods.
type bench struct {
	*testing.T

	client    client.Client
	namespace string
	requests  *requests
	kubelet   *standin.Kubelet
}

func start(t *testing.T, o cloneset.Options) *bench {
	t.Helper()
	return startWith(t, o, func(c client.WithWatch) client.Client { return c })
}

// startWith gives the reconciler a client of another kind.
func startWith(t *testing.T, o cloneset.Options, wrap func(client.WithWatch) client.Client) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, cluster.Options{Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_clonesets.yaml", "../../config/crd/bases/apps.kruise.io_imagepulljobs.yaml"}})
	b := &bench{T: t, client: c.Client, namespace: c.Namespace(t), requests: &requests{}}
	counted := rest.CopyConfig(c.Config)
	counted.QPS = -1
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		b.requests.next = next
		return b.requests
	})
	b.run(counted, scheme, func(mgr ctrl.Manager) error {
		watching, err := client.NewWithWatch(counted, client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache()}})
		if err != nil {
			return err
		}
		r, err := cloneset.New(wrap(watching), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(t.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
	b.run(c.Config, scheme, func(mgr ctrl.Manager) error {
		b.kubelet = &standin.Kubelet{Client: mgr.GetClient(), Namespace: b.namespace, Node: "node-1"}
		return b.kubelet.SetupWithManager(mgr)
	})
	return b
}

// run starts a manager of the namespace that ends with the test.
func (b *bench) run(config *rest.Config, scheme *runtime.Scheme, add func(ctrl.Manager) error) {
	b.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
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
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
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
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		if err := b.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return false, err
		}
		last = check(set, b.pods(set))
		return last == nil, nil
	})
	if err != nil {
		b.Fatalf("%v; last: %v\nstatus: %+v\nrequests:\n%s", err, last, set.Status, strings.Join(b.requests.take(), "\n"))
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
	next http.RoundTripper

	mu  sync.Mutex
	all []string
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
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

// Package podbench is a place to try a reconciler of pods: a namespace of a real API server, a manager that runs in it, and a record of
// what it asks of the API server. There is no kubelet: tests say what becomes of their pods, or have something beside it do so.
package podbench

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
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
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster"
)

const (
	// patience is how long Until waits: the machine may be busy.
	patience = 2 * time.Minute
	// quiet is how long nothing may happen until Still believes that nothing will. Some reconcilers wait half a second for more.
	quiet = 800 * time.Millisecond
)

// Bench is a namespace for one test.
type Bench struct {
	*testing.T

	// Client reads and writes without a cache, and is not recorded.
	Client client.Client
	// Namespace is where the managers of Run and Beside look.
	Namespace string
	// Cache of these managers. A test adds to it what keeps them to its own objects among those without a namespace.
	Cache cache.Options

	config *rest.Config
	scheme *runtime.Scheme
	mu     sync.Mutex
	asked  []string
	// watched are the resources that informers have asked for.
	watched map[string]bool
}

// New makes a namespace on an API server with these files of CRDs. The test runs beside others.
func New(t *testing.T, o cluster.Options) *Bench {
	t.Helper()
	o.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(o.Scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, o)
	namespace := c.Namespace(t)
	return &Bench{
		T: t, Client: c.Client, Namespace: namespace, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		config: c.Config, scheme: o.Scheme, watched: map[string]bool{},
	}
}

// Run starts a manager with what add adds to it, and gives what stops it. It stops with the test at the latest. The client
// reads from the manager's cache; what goes through it and through the manager is recorded.
func (b *Bench) Run(add func(ctrl.Manager, client.WithWatch) error) (stop func()) {
	b.Helper()
	counted := rest.CopyConfig(b.config)
	counted.QPS = -1
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return b.record(next, r) })
	})
	return b.run(counted, func(mgr ctrl.Manager) error {
		cached, err := client.NewWithWatch(counted, client.Options{Scheme: b.scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache()}})
		if err != nil {
			return err
		}
		return add(mgr, cached)
	})
}

// Beside is Run for what is there for the sake of the test, as something that runs pods: nothing is recorded.
func (b *Bench) Beside(add func(ctrl.Manager) error) (stop func()) {
	b.Helper()
	return b.run(b.config, add)
}

func (b *Bench) run(config *rest.Config, add func(ctrl.Manager) error) (stop func()) {
	b.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: b.scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Cache: b.Cache,
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

// roundTripper is a function in the place of a type.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls it.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// record notes a request for an object: not those of informers, and not events.
func (b *Bench) record(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	query := r.URL.Query()
	if query.Get("watch") != "" || query.Get("limit") != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watched[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]] = true
		return response, err
	}
	path := b.short(r.URL.Path)
	if path == "" || strings.Contains("/"+path, "/events") {
		return response, err
	}
	code := 0
	if response != nil {
		code = response.StatusCode
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, fmt.Sprintf("%s %s %d", r.Method, path, code))
	return response, err
}

// short is a path without the version of the API and without the namespace; empty if it is not that of objects.
func (b *Bench) short(path string) string {
	at := map[string]int{"api": 2, "apis": 3}
	all := strings.Split(strings.TrimPrefix(path, "/"), "/")
	before, objects := at[all[0]]
	if !objects || len(all) <= before {
		return ""
	}
	return strings.TrimPrefix(strings.Join(all[before:], "/"), "namespaces/"+b.Namespace+"/")
}

// Asked are the requests since it was last called: method, path in the namespace, and code of the answer. The path of what is not
// in the namespace begins with its resource.
func (b *Bench) Asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.asked
	b.asked = nil
	return all
}

// Watched are the resources of which a manager has had an informer.
func (b *Bench) Watched() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.watched))
}

// Still waits until nothing is asked any more.
func (b *Bench) Still() {
	b.Helper()
	count := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.asked)
	}
	for last, since := count(), time.Now(); time.Since(since) < quiet; {
		time.Sleep(quiet / 10) //nolint:forbidigo // that nothing happens is the thing to see
		if now := count(); now != last {
			last, since = now, time.Now()
		}
	}
}

// Until waits for something to be so.
func (b *Bench) Until(check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 30*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		asked := b.Asked()
		b.Fatalf("%v; last: %v\nasked:\n%s", err, last, strings.Join(asked[max(len(asked)-40, 0):], "\n"))
	}
}

// Look reads an object as it is now.
func (b *Bench) Look(o client.Object) error {
	return b.Client.Get(b.Context(), client.ObjectKeyFromObject(o), o)
}

// Pod makes a pod on a node of its own name.
func (b *Bench) Pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: b.Namespace, Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
	for _, f := range change {
		f(pod)
	}
	if err := b.Client.Create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	return pod
}

// Status changes that of a pod as a kubelet does, whoever has written it meanwhile, and has the pod as it is then.
func (b *Bench) Status(pod *corev1.Pod, change func(*corev1.Pod)) {
	b.Helper()
	if err := b.Look(pod); err != nil {
		b.Fatal(err)
	}
	before := pod.DeepCopy()
	change(pod)
	if err := b.Client.Status().Patch(b.Context(), pod, client.StrategicMergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// Gone deletes an object at once.
func (b *Bench) Gone(o client.Object) {
	b.Helper()
	if err := b.Client.Delete(b.Context(), o, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		b.Fatal(err)
	}
}

// Events of a reason about an object, with how often each was told.
func (b *Bench) Events(about client.Object, reason string) []string {
	b.Helper()
	var list corev1.EventList
	if err := b.Client.List(b.Context(), &list, client.InNamespace(b.Namespace)); err != nil {
		b.Fatal(err)
	}
	var texts []string
	for _, e := range list.Items {
		if e.InvolvedObject.UID == about.GetUID() && e.Reason == reason {
			texts = append(texts, fmt.Sprintf("%s (%d)", e.Message, max(e.Count, 1)))
		}
	}
	slices.Sort(texts)
	return texts
}

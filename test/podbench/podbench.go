package podbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	crconfig "sigs.k8s.io/controller-runtime/pkg/config"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/kruisekit/kruisekit/test/requests"
)

// patience is how long Until waits: the machine may be busy.
const patience = 2 * time.Minute

// Bench is a namespace for one test.
type Bench struct {
	*testing.T

	// Client reads and writes without a cache, and is not recorded.
	Client client.Client
	// Namespace is where the managers of Run and Beside look.
	Namespace string
	// Cache of these managers. A test adds to it what keeps them to its own objects among those without a namespace.
	Cache cache.Options
	// Config and Scheme are those of these managers. A test that limits the rights of a manager changes the config before
	// Run.
	Config *rest.Config
	Scheme *runtime.Scheme
	// Mapper has the kinds that are installed for these managers; nil for those of the API server.
	Mapper meta.RESTMapper
	// Patience is how long Until waits. A test of many objects raises it.
	Patience time.Duration

	requests *requests.Recorder
	mu       sync.Mutex
	// sent and answered count the requests of the managers of Run, events included.
	sent, answered int
	// watched are the resources that informers have asked for.
	watched map[string]bool
	// observed are the managers that run.
	observed []*observed
}

// observed is what Still looks at of a manager.
type observed struct {
	mu     sync.Mutex
	queues []*queue
	cache  *observedCache
}

// New makes a namespace on an API server with these files of CRDs, and with the kinds of Kubernetes and of v1beta1
// where the options have no scheme. The test runs beside others.
func New(t *testing.T, o cluster.Options) *Bench {
	t.Helper()
	if o.Scheme == nil {
		o.Scheme = Scheme(t)
	}
	return On(t, cluster.Start(t, o), o.Scheme)
}

// Scheme has the kinds of Kubernetes and of v1beta1, and those that are added.
func Scheme(t *testing.T, add ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, f := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme}, add...) {
		if err := f(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// On makes a namespace on an API server that runs already: one that several tests share, because the kinds have no
// namespace.
func On(t *testing.T, c *cluster.Cluster, scheme *runtime.Scheme) *Bench {
	t.Helper()
	namespace := c.Namespace(t)
	return &Bench{
		T:         t,
		Client:    c.Client,
		Namespace: namespace,
		Cache:     cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Config:    c.Config,
		Scheme:    scheme,
		Patience:  patience,
		watched:   map[string]bool{},
		requests:  &requests.Recorder{Namespace: namespace},
	}
}

// Run starts a manager with what add adds to it, and gives what stops it. It stops with the test at the latest. The
// client reads from the manager's cache; what goes through it and through the manager is recorded.
func (b *Bench) Run(add func(ctrl.Manager, client.WithWatch) error) (stop func()) {
	b.Helper()
	counted := rest.CopyConfig(b.Config)
	counted.QPS = -1
	counted.Wrap(b.requests.Wrap)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return b.count(next, r) })
	})
	return b.run(counted, func(mgr ctrl.Manager) error {
		cached, err := client.NewWithWatch(counted, client.Options{
			Scheme: b.Scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache()},
		})
		if err != nil {
			return err
		}
		return add(mgr, cached)
	})
}

// Beside is Run for what is there for the sake of the test, as something that runs pods: nothing is recorded.
func (b *Bench) Beside(add func(ctrl.Manager) error) (stop func()) {
	b.Helper()
	return b.run(b.Config, add)
}

func (b *Bench) run(config *rest.Config, add func(ctrl.Manager) error) (stop func()) {
	b.Helper()
	o := &observed{}
	var mapper func(*rest.Config, *http.Client) (meta.RESTMapper, error)
	if b.Mapper != nil {
		mapper = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return b.Mapper, nil }
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		MapperProvider: mapper,
		Scheme:         b.Scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: b.Cache, NewCache: o.newCache,
		Controller: crconfig.Controller{UsePriorityQueue: ptr.To(true)}, // the one that is observed
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := add(observedManager{Manager: mgr, observe: o.add, fail: b.Errorf}); err != nil {
		b.Fatal(err)
	}
	b.mu.Lock()
	b.observed = append(b.observed, o)
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.observed = slices.DeleteFunc(b.observed, func(other *observed) bool { return other == o })
	})
	b.Cleanup(stop)
	return stop
}

// Still waits until the managers of the bench have nothing left to do: no request is reconciled, queued or due within a
// second, each handler has seen every object as the API server has it, and no answer is outstanding.
func (b *Bench) Still() {
	b.Helper()
	b.Until(func() error {
		before, err := b.left()
		if err == nil {
			err = b.behind()
		}
		after, work := b.left()
		switch {
		case err != nil:
			return err
		case work != nil:
			return work
		case !slices.Equal(before, after): // an event came after the queues were looked at
			return errors.New("requests were queued meanwhile")
		}
		return nil
	})
}

// behind returns an error where a handler has not seen what the API server has.
func (b *Bench) behind() error {
	b.mu.Lock()
	managers := slices.Clone(b.observed)
	b.mu.Unlock()
	for _, m := range managers {
		what, err := m.cache.behind(b.Context(), b.Client)
		if err != nil {
			return err
		}
		if what != "" {
			return errors.New(what)
		}
	}
	return nil
}

// left returns an error that describes work that is left, and counts that change with each piece of work.
func (b *Bench) left() (counts []int, err error) {
	b.mu.Lock()
	counts, managers := []int{b.sent, len(b.observed)}, slices.Clone(b.observed)
	if open := b.sent - b.answered; open > 0 {
		err = fmt.Errorf("%d requests have no answer", open)
	}
	b.mu.Unlock()
	for _, m := range managers {
		added, work := m.left()
		counts = append(counts, added...)
		if work != "" {
			err = errors.New(work)
		}
	}
	return counts, err
}

// Until waits for something to be so.
func (b *Bench) Until(check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 30*time.Millisecond, b.Patience, true,
		func(context.Context) (bool, error) {
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

// Status changes that of a pod as a kubelet does, also after another writer, and returns the pod.
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

// Events of a reason about an object, with how often each was emitted.
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

//go:build envtest

package spreads_test

import (
	"context"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/controllers/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
	"github.com/kruisekit/kruisekit/webhooks/pod"
	webhook "github.com/kruisekit/kruisekit/webhooks/workloadspread"
)

// burst is how many pods TestServer/Burst creates.
var burst = flag.Int("burst", 150, "pods that the burst creates")

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// ground is an API server that sends pods to two replicas in turn. The first one leads, and reconciles.
type ground struct {
	*cluster.Cluster

	scheme *runtime.Scheme
	server *httptest.Server
	turn   atomic.Int64
	down   atomic.Bool
	// handlers of the replicas, by path.
	handlers   [2]map[string]http.Handler
	allocators [2]*webhook.Allocator
	// calls by replica, and requests that the replicas send by kind.
	calls [2]atomic.Int64

	mu       sync.Mutex
	requests map[string]int
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{scheme: runtime.NewScheme(), requests: map[string]int{}}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, appsv1beta1.AddToScheme} {
		if err := add(g.scheme); err != nil {
			t.Fatal(err)
		}
	}
	g.Cluster = cluster.Start(t, cluster.Options{Private: true, Scheme: g.scheme, CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_workloadspreads.yaml", "../../config/crd/bases/apps.kruise.io_clonesets.yaml",
	}})
	g.server = httptest.NewTLSServer(g)
	t.Cleanup(g.server.Close)
	for _, name := range []string{"kruise-system"} {
		if err := g.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range g.handlers {
		g.start(t, i)
	}
	return g
}

// ServeHTTP passes a review to the replica whose turn it is.
func (g *ground) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.down.Load() {
		http.Error(w, "no replica answers", http.StatusServiceUnavailable)
		return
	}
	i := g.turn.Add(1) % 2
	h := g.handlers[i][r.URL.Path]
	if h == nil {
		http.Error(w, "there is no such path", http.StatusNotFound)
		return
	}
	g.calls[i].Add(1)
	h.ServeHTTP(w, r)
}

// roundTripper counts the writes and the live reads of the replicas.
type roundTripper struct {
	next http.RoundTripper
	g    *ground
}

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if !req.URL.Query().Has("watch") && req.Method != http.MethodGet {
		r.g.mu.Lock()
		r.g.requests[req.Method]++
		r.g.mu.Unlock()
	}
	return r.next.RoundTrip(req)
}

// writes returns how many writes the replicas have sent since the last call, without leases and events.
func (g *ground) writes() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, c := range g.requests {
		n += c
	}
	clear(g.requests)
	return n
}

// start runs a replica; the first one leads.
func (g *ground) start(t *testing.T, i int) {
	t.Helper()
	counted := rest.CopyConfig(g.Config)
	counted.QPS = -1
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTripper{next, g} })
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme:                  g.scheme,
		Metrics:                 server.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: ptr.To(true)},
		LeaderElection:          i > 0,
		LeaderElectionID:        "held",
		LeaderElectionNamespace: "kruise-system",
		LeaderElectionConfig:    g.Config,
	})
	if err != nil {
		t.Fatal(err)
	}
	allocator, err := webhook.NewAllocator(mgr, webhook.AllocatorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := pod.New([]pod.Step{pod.Spread(allocator)}, pod.Options{})
	if err != nil {
		t.Fatal(err)
	}
	departures, err := disruption.New(nil, mgr.GetAPIReader(), disruption.Options{Spreads: allocator})
	if err != nil {
		t.Fatal(err)
	}
	g.allocators[i] = allocator
	g.handlers[i] = map[string]http.Handler{
		pod.Path: pods.Handler(false), pod.OpenPath: pods.Handler(true), disruption.OpenPath: departures.OpenHandler(),
	}
	if i == 0 {
		g.reconcile(t, mgr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("replica %d: %v", i, err)
		}
	})
	g.until(t, "the replica is not ready", func(context.Context) error {
		ready, end := context.WithCancel(ctx)
		end()
		return errors.Join(allocator.Ready(ready), pods.Ready((&http.Request{}).WithContext(ctx)),
			departures.Ready((&http.Request{}).WithContext(ctx)))
	})
}

// reconcile adds the reconcilers: of WorkloadSpreads, and of the entries of both webhooks.
func (g *ground) reconcile(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	r, err := workloadspread.New(mgr.GetClient(), workloadspread.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reach := podscope.Options{
		URL:         g.server.URL,
		CABundle:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw}),
		NoDeletes:   true,
		LookFor:     time.Hour,
		KeepRemoved: time.Second,
	}
	mutating, err := podscope.New(mgr.GetClient(), reach)
	if err != nil {
		t.Fatal(err)
	}
	validating, err := podscope.NewDisruptions(mgr.GetClient(), reach)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []interface {
		SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error
	}{r, mutating, validating} {
		if err := s.SetupWithManager(t.Context(), mgr, controller.Options{MaxConcurrentReconciles: 1}); err != nil {
			t.Fatal(err)
		}
	}
}

func (*ground) until(t *testing.T, otherwise string, so func(context.Context) error) {
	t.Helper()
	var last error
	if wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = so(ctx)
			return last == nil, nil
		}) != nil {
		t.Fatalf("%s: %v", otherwise, last)
	}
}

// spread creates a WorkloadSpread in a new namespace with a CloneSet, or another target, and waits until pods of the
// target are sent, and both replicas have the WorkloadSpread.
func (g *ground) spread(t *testing.T, ws *appsv1beta1.WorkloadSpread, target client.Object) string {
	t.Helper()
	namespace := g.Namespace(t)
	target.SetNamespace(namespace)
	ws.Namespace = namespace
	for _, o := range []client.Object{target, ws} {
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	owner := g.owner(t, target)
	g.until(t, "no pod is sent", func(ctx context.Context) error {
		for i, d := range g.allocators {
			if len(d.In(namespace)) == 0 {
				return fmt.Errorf("replica %d does not have the WorkloadSpread", i)
			}
		}
		before := g.calls[0].Load() + g.calls[1].Load()
		p := newPod(namespace, "probe", owner)
		if err := g.Client.Create(ctx, p, client.DryRunAll); err != nil {
			return err
		}
		if g.calls[0].Load()+g.calls[1].Load() == before {
			return errors.New("the pod was not sent")
		}
		return nil
	})
	return namespace
}

// owner is a reference to a controller.
func (g *ground) owner(t *testing.T, o client.Object) metav1.OwnerReference {
	t.Helper()
	gvk, err := g.Client.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	return metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: o.GetName(), UID: o.GetUID(), Controller: ptr.To(true),
	}
}

// create creates pods of an owner, and returns how many each subset got.
func (g *ground) create(t *testing.T, namespace string, owner metav1.OwnerReference, names ...string) map[string]int {
	t.Helper()
	got := map[string]int{}
	for _, name := range names {
		p := newPod(namespace, name, owner)
		if err := g.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		got[subsetOf(p)]++
	}
	return got
}

func subsetOf(p *corev1.Pod) string {
	m, _ := subset.MatchOf(p)
	return m.Subset
}

func newPod(namespace, name string, owner metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       namespace,
			Name:            name,
			Labels:          map[string]string{"app": "web", "pod-template-hash": "5f6"},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "m"}}},
	}
}

// newSpread has subsets a, b ...; a limit that is nil is none.
func newSpread(apiVersion, kind string, limits ...*intstr.IntOrString) *appsv1beta1.WorkloadSpread {
	ws := &appsv1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	ws.Spec.TargetReference = &appsv1beta1.TargetReference{APIVersion: apiVersion, Kind: kind, Name: "web"}
	for i, limit := range limits {
		name := string(rune('a' + i))
		ws.Spec.Subsets = append(ws.Spec.Subsets, appsv1beta1.WorkloadSpreadSubset{
			Name: name, MaxReplicas: limit, Tolerations: []corev1.Toleration{{Key: name, Operator: corev1.TolerationOpExists}},
			Patch: runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"subset":"` + name + `"}}}`)},
			RequiredNodeSelector: &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
			}},
		})
	}
	return ws
}

func limit(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }

func newCloneSet() *appsv1beta1.CloneSet {
	set := &appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas, set.Spec.Selector = ptr.To[int32](4), &metav1.LabelSelector{
		MatchLabels: map[string]string{"app": "web"},
	}
	set.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "m"}}},
	}
	return set
}

func newDeployment() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](4), &metav1.LabelSelector{
		MatchLabels: map[string]string{"app": "web"},
	}
	d.Spec.Template = newCloneSet().Spec.Template
	return d
}

// status waits for a status of the first subsets: replicas and missing replicas of each, and no record of admission.
func (g *ground) status(t *testing.T, namespace, want string) {
	t.Helper()
	g.until(t, "the status is another one", func(ctx context.Context) error {
		ws := &appsv1beta1.WorkloadSpread{}
		if err := g.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "s"}, ws); err != nil {
			return err
		}
		got := ""
		for _, s := range ws.Status.SubsetStatuses {
			got += fmt.Sprintf("%s %d %d;", s.Name, s.Replicas, s.MissingReplicas)
			if len(s.CreatingPods)+len(s.DeletingPods) > 0 {
				return fmt.Errorf("records %v %v", s.CreatingPods, s.DeletingPods)
			}
		}
		for version, entries := range ws.Status.VersionedSubsetStatuses {
			for i := range entries {
				if n := len(entries[i].CreatingPods) + len(entries[i].DeletingPods); n > 0 {
					return fmt.Errorf("%d records of version %s", n, version)
				}
			}
		}
		if got != want {
			return fmt.Errorf("status %s, want %s", got, want)
		}
		return nil
	})
}

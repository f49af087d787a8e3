//go:build envtest

package disruptions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/controllers/podunavailablebudget"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/standin"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

const (
	namespace     = "shop"
	configuration = "disruptions"
	replicas      = 2
)

// ground is an API server with replicas of the webhook, which it asks by turns.
type ground struct {
	*testing.T
	*cluster.Cluster

	scheme *runtime.Scheme
	*record
}

// record is what the replicas were sent, and wrote.
type record struct {
	handlers []http.Handler
	turn     atomic.Int32

	mu   sync.Mutex
	sent map[string]int
	// down has no replica answer.
	down atomic.Bool
	// writes are those of statuses of budgets.
	writes, conflicts atomic.Int32
}

// in is the ground of a subtest.
func (g *ground) in(t *testing.T) *ground {
	t.Helper()
	return &ground{T: t, Cluster: g.Cluster, scheme: g.scheme, record: g.record}
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{T: t, scheme: runtime.NewScheme(), record: &record{sent: map[string]int{}}}
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, appsv1beta1.AddToScheme, policyv1beta1.AddToScheme,
	} {
		if err := add(g.scheme); err != nil {
			t.Fatal(err)
		}
	}
	g.Cluster = cluster.Start(t, cluster.Options{Private: true, Scheme: g.scheme, CRDDirs: []string{
		"../../config/crd/bases/policy.kruise.io_podunavailablebudgets.yaml",
		"../../config/crd/bases/apps.kruise.io_clonesets.yaml",
	}})
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100")}
	// a resize looks it up
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Capacity: cpu, Allocatable: cpu},
	}
	for _, o := range []client.Object{node, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}} {
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	hook := httptest.NewUnstartedServer(http.HandlerFunc(g.serve))
	hook.StartTLS()
	t.Cleanup(hook.Close)
	for i := range replicas {
		g.replica(i, podscope.Options{
			Configuration: configuration, Updates: true, ExemptUsers: pub.SystemUsers(), URL: hook.URL,
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
		})
	}
	return g
}

// replica runs a manager with the webhook. The first one leads.
func (g *ground) replica(number int, entries podscope.Options) {
	g.Helper()
	mgr, err := ctrl.NewManager(g.Config, ctrl.Options{
		Scheme: g.scheme, Metrics: server.Options{BindAddress: "0"}, NewClient: g.counting,
	})
	if err != nil {
		g.Fatal(err)
	}
	guard, err := disruption.NewGuard(mgr, disruption.GuardOptions{Policy: pub.Policy{
		Installed: inplace.Installation{EnvDaemon: true}, ExemptUsers: pub.SystemUsers(),
	}})
	if err != nil {
		g.Fatal(err)
	}
	w, err := disruption.New(guard, mgr.GetAPIReader(), disruption.Options{Updates: true})
	if err != nil {
		g.Fatal(err)
	}
	paths := http.NewServeMux()
	paths.Handle(disruption.Path, w.Handler())
	paths.Handle(disruption.OpenPath, w.OpenHandler())
	g.handlers = append(g.handlers, paths)
	if number == 0 {
		g.lead(mgr, entries)
	}
	ctx, cancel := context.WithCancel(g.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	g.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			g.Errorf("manager: %v", err)
		}
	})
	g.until("a replica is not ready", func(ctx context.Context) error {
		return w.Ready((&http.Request{}).WithContext(ctx))
	})
}

func (g *ground) lead(mgr ctrl.Manager, entries podscope.Options) {
	g.Helper()
	kubelet := &standin.Kubelet{Client: mgr.GetClient(), Namespace: namespace, Node: "node-1"}
	budgets, err := podunavailablebudget.New(mgr.GetClient(), podunavailablebudget.Options{})
	if err != nil {
		g.Fatal(err)
	}
	scope, err := podscope.NewDisruptions(mgr.GetClient(), entries)
	if err != nil {
		g.Fatal(err)
	}
	for _, err := range []error{
		kubelet.SetupWithManager(mgr), budgets.SetupWithManager(g.Context(), mgr, controller.Options{}),
		scope.SetupWithManager(g.Context(), mgr, controller.Options{}),
	} {
		if err != nil {
			g.Fatal(err)
		}
	}
}

// serve has the replicas answer by turns, and records what was sent.
func (g *ground) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var review admissionv1.AdmissionReview
	if json.Unmarshal(body, &review) == nil && review.Request != nil {
		q := review.Request
		g.mu.Lock()
		g.sent[fmt.Sprintf("%s %s/%s", q.Operation, q.Name, q.SubResource)]++
		g.mu.Unlock()
	}
	if g.down.Load() {
		http.Error(w, "no endpoints", http.StatusServiceUnavailable)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.handlers[int(g.turn.Add(1))%len(g.handlers)].ServeHTTP(w, r)
}

// took returns how many requests were sent since the last call.
func (g *ground) took() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, times := range g.sent {
		n += times
	}
	g.sent = map[string]int{}
	return n
}

func (g *ground) until(otherwise string, so func(context.Context) error) {
	g.Helper()
	var last error
	if wait.PollUntilContextTimeout(g.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = so(ctx)
			return last == nil, nil
		}) != nil {
		g.Fatalf("%s: %v", otherwise, last)
	}
}

// budget stores a budget, and waits until it is computed and requests about its pods are sent.
func (g *ground) budget(b *policyv1beta1.PodUnavailableBudget, current int32) {
	g.Helper()
	b.Namespace = namespace
	if err := g.Client.Create(g.Context(), b); err != nil {
		g.Fatal(err)
	}
	g.until("the budget is not computed", func(ctx context.Context) error {
		if err := g.Client.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		if b.Status.ObservedGeneration != b.Generation || b.Status.CurrentAvailable != current {
			return fmt.Errorf("status %+v", b.Status)
		}
		return nil
	})
	g.until("the requests are not sent", func(ctx context.Context) error {
		var entries admissionregistrationv1.ValidatingWebhookConfiguration
		if err := g.Client.Get(ctx, types.NamespacedName{Name: configuration}, &entries); err != nil {
			return err
		}
		return g.sees(ctx, b.Name)
	})
	g.took()
}

// sees reports whether requests about a pod of the budget are sent by now: API servers read their configuration from a
// cache.
func (g *ground) sees(ctx context.Context, name string) error {
	g.took()
	pods := &corev1.PodList{}
	if err := g.Client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": name}); err != nil {
		return err
	}
	for i := range pods.Items {
		_ = g.Client.Delete(ctx, &pods.Items[i], client.DryRunAll) // the answer does not matter
	}
	if g.took() == 0 {
		return fmt.Errorf("no deletion with app=%s is sent", name)
	}
	return nil
}

// pods are available pods with a label.
func (g *ground) pods(app string, n int, change func(*corev1.Pod)) []*corev1.Pod {
	g.Helper()
	var all []*corev1.Pod
	for i := range n {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": app},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "web:1"}}},
		}
		if change != nil {
			change(pod)
		}
		if err := g.Client.Create(g.Context(), pod); err != nil {
			g.Fatal(err)
		}
		all = append(all, pod)
	}
	for _, pod := range all {
		g.until("a pod does not run", func(ctx context.Context) error {
			if err := g.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("status %+v", pod.Status)
		})
	}
	return all
}

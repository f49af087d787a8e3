package disruption_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

const namespace = "shop"

// cluster has budgets, and replicas whose caches lag as the test wants.
type cluster struct {
	testing.TB
	*apiserver.Server

	// reads counts live reads, which a fault fails.
	reads atomic.Int32
	fault error
}

// reader reads live.
type reader struct{ *cluster }

func (r reader) Get(ctx context.Context, name client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if r.reads.Add(1); r.fault != nil {
		return r.fault
	}
	return r.Server.Get(ctx, name, into, o...)
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, policyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &cluster{TB: t, Server: apiserver.New(scheme, noon)}
}

// put stores a budget over the pods with app=web that allows some disruptions.
func (c *cluster) put(name string, allowed int32, change func(*policyv1beta1.PodUnavailableBudget)) {
	c.Helper()
	b := &policyv1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: policyv1beta1.PodUnavailableBudgetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			MaxUnavailable: ptr.To(intstr.FromInt32(allowed)),
		},
		Status: policyv1beta1.PodUnavailableBudgetStatus{
			ObservedGeneration: 1,
			UnavailableAllowed: allowed,
			CurrentAvailable:   100,
			DesiredAvailable:   100 - allowed,
			TotalReplicas:      100,
		},
	}
	if change != nil {
		change(b)
	}
	if err := c.Put(b); err != nil {
		c.Fatal(err)
	}
}

// read returns a stored budget.
func (c *cluster) read(name string) *policyv1beta1.PodUnavailableBudget {
	c.Helper()
	b := &policyv1beta1.PodUnavailableBudget{}
	if err := c.Get(c.Context(), types.NamespacedName{Namespace: namespace, Name: name}, b); err != nil {
		c.Fatal(err)
	}
	return b
}

// show has an index show what is stored now.
func (c *cluster) show(x *disruption.BudgetIndex, names ...string) {
	c.Helper()
	for _, name := range names {
		raw := &unstructured.Unstructured{}
		raw.SetGroupVersionKind(disruption.BudgetKind())
		if err := c.Get(c.Context(), types.NamespacedName{Namespace: namespace, Name: name}, raw); err != nil {
			c.Fatal(err)
		}
		if err := x.Put(raw); err != nil {
			c.Fatal(err)
		}
	}
	c.Requests()
}

// replica is a Guard with a cache of its own.
func (c *cluster) replica(
	change func(*disruption.GuardLookups, *disruption.GuardOptions),
) (*disruption.Guard, *disruption.BudgetIndex) {
	c.Helper()
	l := disruption.GuardLookups{Client: c, Live: reader{c}, ReplicaSets: c}
	o := disruption.GuardOptions{Now: noon}
	if change != nil {
		change(&l, &o)
	}
	x := disruption.NewBudgetIndex(o.Now)
	l.Budgets = x
	g, err := disruption.NewGuardOf(l, o)
	if err != nil {
		c.Fatal(err)
	}
	return g, x
}

// codes returns the answers to the writes of statuses since the last call.
func (c *cluster) codes() []string {
	var all []string
	for _, r := range c.Requests() {
		all = append(all, r[strings.LastIndex(r, " ")+1:])
	}
	return all
}

// web is an available pod that the budgets guard.
func web(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "web:1"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Image: "web:1", ImageID: "web@1", Ready: true}},
		},
	}
}

func webs(n int) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, web(fmt.Sprintf("web-%03d", i)))
	}
	return all
}

// slow holds writes of statuses until it is opened.
type slow struct {
	client.Client
	open chan struct{}
	// held receives once for each write that is held.
	held chan struct{}

	mu    sync.Mutex
	fault error
}

func (s *slow) Status() client.SubResourceWriter { return slowStatus{s.Client.Status(), s} }

type slowStatus struct {
	client.SubResourceWriter
	*slow
}

func (s slowStatus) Patch(
	ctx context.Context, o client.Object, p client.Patch, options ...client.SubResourcePatchOption,
) error {
	select {
	case s.held <- struct{}{}:
	default:
	}
	select {
	case <-s.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		return fault
	}
	return s.SubResourceWriter.Patch(ctx, o, p, options...)
}

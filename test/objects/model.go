package objects

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/test/standin"
)

// Model runs a reconciler and a kubelet by turns over objects in memory, with a clock that only the test moves.
type Model struct {
	Server  *apiserver.Server
	Kubelet *standin.Kubelet
	// Live reads past the cache.
	Live *Live
	// Reconciler reconciles the objects of List.
	Reconciler reconcile.Reconciler
	List       client.ObjectList
	Clock      time.Time
	// Collects has RunPods also delete the claims all of whose owners are gone, as the garbage collector does.
	Collects bool
	// Due is when an object is reconciled again although nothing changes; zero for never.
	Due time.Time

	t testing.TB
}

// NewModel returns a model without a reconciler. The scheme has the kinds of Kubernetes and those of add.
func NewModel(t testing.TB, list client.ObjectList, add func(*runtime.Scheme) error) *Model {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), add(scheme)); err != nil {
		t.Fatal(err)
	}
	m := &Model{t: t, List: list, Clock: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.Server = apiserver.New(scheme, m.Now)
	m.Live = &Live{Reader: m.Server, scheme: scheme}
	m.Kubelet = &standin.Kubelet{
		Node: "node-1", Now: m.Now, Broken: func(image string) bool { return strings.HasSuffix(image, ":broken") },
	}
	return m
}

// Now is the time of the clock.
func (m *Model) Now() time.Time { return m.Clock }

// Advance moves the clock.
func (m *Model) Advance(by time.Duration) { m.Clock = m.Clock.Add(by) }

// Put stores an object as it is, see apiserver.Server.Put.
func (m *Model) Put(o client.Object) {
	m.t.Helper()
	if err := m.Server.Put(o); err != nil {
		m.t.Fatal(err)
	}
}

// Look reads an object again.
func (m *Model) Look(o client.Object) {
	m.t.Helper()
	if err := m.Server.Get(m.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		m.t.Fatal(err)
	}
}

// Change reads an object again, and patches it.
func Change[T client.Object](m *Model, o T, change func(T)) {
	m.t.Helper()
	m.Look(o)
	before, is := o.DeepCopyObject().(client.Object)
	if !is {
		m.t.Fatalf("the copy of %T is no object", o)
	}
	change(o)
	if err := m.Server.Patch(m.t.Context(), o, client.MergeFrom(before)); err != nil {
		m.t.Fatal(err)
	}
}

// Pods returns all pods in the order of their names.
func (m *Model) Pods() []*corev1.Pod {
	m.t.Helper()
	var list corev1.PodList
	if err := m.Server.List(m.t.Context(), &list); err != nil {
		m.t.Fatal(err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods
}

// Reconcile reconciles each object once.
func (m *Model) Reconcile() {
	m.t.Helper()
	m.Due = time.Time{}
	if err := m.Server.List(m.t.Context(), m.List); err != nil {
		m.t.Fatal(err)
	}
	err := meta.EachListItem(m.List, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		request := ctrl.Request{}
		request.Namespace, request.Name = object.GetNamespace(), object.GetName()
		result, err := m.Reconciler.Reconcile(m.t.Context(), request)
		after := result.RequeueAfter
		if err != nil && !errors.Is(err, reconcile.TerminalError(nil)) {
			m.t.Logf("%s: %v", object.GetName(), err)
			after = time.Second
		}
		if at := m.Clock.Add(after); after > 0 && (m.Due.IsZero() || at.Before(m.Due)) {
			m.Due = at
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// Turns checks after each turn of the reconciler and of the kubelet, until the check returns nil or there is nothing
// left to do now.
func (m *Model) Turns(check func() error) (err error) {
	m.t.Helper()
	for range 1000 {
		before := m.Server.Version()
		m.Reconcile()
		if err = check(); err == nil {
			return nil
		}
		m.RunPods()
		if err = check(); err == nil {
			return nil
		}
		m.Advance(50 * time.Millisecond)
		if m.Server.Version() == before && (m.Due.IsZero() || m.Due.After(m.Clock)) {
			return err
		}
	}
	m.t.Fatalf("the model does not come to rest: %v; requests: %v", err, m.Server.Requests())
	return err
}

var errNever = errors.New("never")

// Still runs until there is nothing left to do now.
func (m *Model) Still() {
	m.t.Helper()
	_ = m.Turns(func() error { return errNever })
}

// RunFor runs for a time. It fails the test where the reconciler asks for no further pass.
func (m *Model) RunFor(d time.Duration) {
	m.t.Helper()
	for end := m.Clock.Add(d); m.Clock.Before(end); m.Clock = m.Due {
		if m.Still(); m.Due.IsZero() {
			m.t.Fatal("nothing is due")
		}
	}
}

// Eventually runs until the check returns nil. It moves the clock to the next requeue where nothing else is left to do.
func (m *Model) Eventually(check func() error) {
	m.t.Helper()
	err := check()
	for range 200 {
		if err == nil {
			return
		}
		if err = m.Turns(check); err == nil || m.Due.IsZero() {
			break
		}
		m.Clock = m.Due
	}
	if err != nil {
		requests := m.Server.Requests()
		m.t.Fatalf("%v; requests:\n%s", err, strings.Join(requests[max(len(requests)-40, 0):], "\n"))
	}
}

// Idle expects that the objects cost no request while nothing changes, also when they are reconciled again.
func (m *Model) Idle() {
	m.t.Helper()
	m.Still()
	m.Server.Requests()
	for range 3 {
		m.Reconcile()
		m.Advance(time.Minute)
	}
	if requests := m.Server.Requests(); len(requests) > 0 {
		m.t.Errorf("%d requests while nothing changes: %v", len(requests), requests)
	}
}

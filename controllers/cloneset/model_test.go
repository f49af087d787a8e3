package cloneset_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/standin"
)

// model runs the reconciler and a kubelet by turns over objects in memory, with a clock that only the test moves.
type model struct {
	user

	server  *objects.Server
	kubelet *standin.Kubelet
	r       *cloneset.Reconciler
	clock   time.Time
	// due is when the set is reconciled again although nothing changes; zero for never.
	due time.Time
}

func newModel(t *testing.T, o cloneset.Options) *model {
	t.Helper()
	return newModelWith(t, o, func(c client.WithWatch) client.WithWatch { return c })
}

// newModelWith gives the reconciler another client.
func newModelWith(t *testing.T, o cloneset.Options, wrap func(client.WithWatch) client.WithWatch) *model {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	m := &model{clock: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.server = objects.New(scheme, m.now)
	m.user = user{T: t, client: m.server, namespace: "shop"}
	m.kubelet = &standin.Kubelet{
		Node: "node-1", Now: m.now,
		Broken:  func(image string) bool { return strings.HasSuffix(image, ":broken") },
		Unready: func(pod *corev1.Pod) bool { _, is := pod.Annotations[unready]; return is },
	}
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}, predownload.Metadata(&v1beta1.ImagePullJob{})} {
		if err := owned.Index(t.Context(), m.server, o); err != nil {
			t.Fatal(err)
		}
	}
	m.start(o, wrap)
	return m
}

// start starts another reconciler in the place of the one before.
func (m *model) start(o cloneset.Options, wrap func(client.WithWatch) client.WithWatch) {
	m.Helper()
	o.Now, o.Recorder = m.now, m.server
	if o.Live == nil {
		o.Live = m.server
	}
	r, err := cloneset.New(wrap(m.server), o)
	if err != nil {
		m.Fatal(err)
	}
	m.r = r
}

func (m *model) now() time.Time { return m.clock }

// reconcile reconciles each set once.
func (m *model) reconcile() {
	m.Helper()
	m.due = time.Time{}
	var sets v1beta1.CloneSetList
	if err := m.client.List(m.Context(), &sets); err != nil {
		m.Fatal(err)
	}
	for i := range sets.Items {
		result, err := m.r.Reconcile(m.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		after := result.RequeueAfter
		if err != nil && !errors.Is(err, reconcile.TerminalError(nil)) {
			m.Logf("%s: %v", sets.Items[i].Name, err)
			after = time.Second
		}
		if at := m.clock.Add(after); after > 0 && (m.due.IsZero() || at.Before(m.due)) {
			m.due = at
		}
	}
}

// turns calls a function after each turn of the reconciler and of the kubelet, until it returns true or there is nothing left
// to do now.
func (m *model) turns(done func() bool) bool {
	m.Helper()
	for range 1000 {
		before := m.server.Version()
		m.reconcile()
		if done() {
			return true
		}
		m.server.RunPods(m.kubelet)
		if done() {
			return true
		}
		m.clock = m.clock.Add(50 * time.Millisecond)
		if m.server.Version() == before && (m.due.IsZero() || m.due.After(m.clock)) {
			return false
		}
	}
	m.Fatalf("the model does not come to rest; requests: %v", m.server.Requests())
	return false
}

// still runs until there is nothing left to do now.
func (m *model) still() {
	m.Helper()
	m.turns(func() bool { return false })
}

// eventually runs until the set is as expected. It moves the clock to the next requeue where nothing else is left to do.
func (m *model) eventually(set *v1beta1.CloneSet, check check) {
	m.Helper()
	var last error
	done := func() bool {
		m.look(set)
		last = check(set, m.pods(set))
		return last == nil
	}
	for range 200 {
		if done() || m.turns(done) {
			return
		}
		if m.due.IsZero() {
			break
		}
		m.clock = m.due
	}
	requests := m.server.Requests()
	m.Fatalf("%v\nstatus: %+v\nrequests:\n%s", last, set.Status, strings.Join(requests[max(len(requests)-40, 0):], "\n"))
}

// stays expects a set when there is nothing left to do now.
func (m *model) stays(set *v1beta1.CloneSet, check check) {
	m.Helper()
	m.still()
	m.look(set)
	if err := check(set, m.pods(set)); err != nil {
		m.Error(err)
	}
}

// idle expects a set that costs no request while nothing changes, also when it is reconciled again.
func (m *model) idle(set *v1beta1.CloneSet) {
	m.Helper()
	m.still()
	m.server.Requests()
	for range 3 {
		m.reconcile()
		m.advance(time.Minute)
	}
	if requests := m.server.Requests(); len(requests) > 0 {
		m.Errorf("%s: %d requests while nothing changes: %v", set.Name, len(requests), requests)
	}
}

// advance moves the clock.
func (m *model) advance(by time.Duration) { m.clock = m.clock.Add(by) }

// emitted expects a number of events of a reason about a set.
func (m *model) emitted(reason string, n int) check {
	return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if got := m.server.Events(set, reason); len(got) != n {
			return fmt.Errorf("events %s: %v, want %d", reason, got, n)
		}
		return nil
	}
}

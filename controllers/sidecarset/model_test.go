package sidecarset_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/sidecar/rollout"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/standin"
)

// model runs the production reconciler and a kubelet by turns over objects in memory, with a clock that only the test moves.
type model struct {
	user

	server  *objects.Server
	kubelet *standin.Kubelet
	r       *sidecarset.Reconciler
	clock   time.Time
	// due is when a set is reconciled again although nothing changes; zero for never.
	due time.Time
}

// newModel gives the reconciler a client that may fail; nil for the server itself.
func newModel(t *testing.T, o sidecarset.Options, wrap func(client.WithWatch) client.WithWatch) *model {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	m := &model{clock: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.server = objects.New(scheme, m.now)
	m.user = user{t: t, client: m.server, namespace: "shop", until: m.eventually}
	m.kubelet = &standin.Kubelet{
		Node: "node-1", Now: m.now,
		Broken:  func(image string) bool { return strings.HasSuffix(image, ":broken") },
		Unready: func(pod *corev1.Pod) bool { _, is := pod.Annotations[unready]; return is },
	}
	bySet := func(o client.Object) []string {
		pod, _ := o.(*corev1.Pod)
		return rollout.Sets(pod)
	}
	if err := m.server.IndexField(t.Context(), &corev1.Pod{}, "kruisekit.dev/sidecarset", bySet); err != nil {
		t.Fatal(err)
	}
	o.Namespace, o.Now, o.Recorder, o.Live = m.namespace, m.now, m.server, m.server
	var c client.WithWatch = m.server
	if wrap != nil {
		c = wrap(c)
	}
	var err error
	if m.r, err = sidecarset.New(c, o); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *model) now() time.Time { return m.clock }

// reconcile reconciles each set once.
func (m *model) reconcile() {
	m.t.Helper()
	m.due = time.Time{}
	var sets v1beta1.SidecarSetList
	if err := m.client.List(m.t.Context(), &sets); err != nil {
		m.t.Fatal(err)
	}
	for i := range sets.Items {
		result, err := m.r.Reconcile(m.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		after := result.RequeueAfter
		if err != nil && !errors.Is(err, reconcile.TerminalError(nil)) {
			m.t.Logf("%s: %v", sets.Items[i].Name, err)
			after = time.Second
		}
		if at := m.clock.Add(after); after > 0 && (m.due.IsZero() || at.Before(m.due)) {
			m.due = at
		}
	}
}

// turns reconciles and runs pods by turns, until the check returns nil or there is nothing left to do now.
func (m *model) turns(check func() error) (err error) {
	m.t.Helper()
	for range 1000 {
		before := m.server.Version()
		m.reconcile()
		if err = check(); err == nil {
			return nil
		}
		m.server.RunPods(m.kubelet)
		m.clock = m.clock.Add(50 * time.Millisecond)
		if m.server.Version() == before && (m.due.IsZero() || m.due.After(m.clock)) {
			return err
		}
	}
	m.t.Fatalf("the model does not come to rest: %v; requests: %v", err, m.server.Requests())
	return err
}

// eventually moves the clock to the next requeue where nothing else is left to do.
func (m *model) eventually(check func() error) {
	m.t.Helper()
	var err error
	for range 200 {
		if err = m.turns(check); err == nil {
			return
		}
		if m.due.IsZero() {
			break
		}
		m.clock = m.due
	}
	requests := m.server.Requests()
	m.t.Fatalf("%v; requests:\n%s", err, strings.Join(requests[max(len(requests)-40, 0):], "\n"))
}

var errNever = errors.New("never")

// still runs until there is nothing left to do now.
func (m *model) still() {
	m.t.Helper()
	_ = m.turns(func() error { return errNever })
}

// events returns how many events of a reason are about a set.
func (m *model) events(set *v1beta1.SidecarSet, reason string) int {
	return len(m.server.Events(set, reason))
}

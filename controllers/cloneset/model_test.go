package cloneset_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/test/objects"
)

// model runs the reconciler of CloneSets.
type model struct {
	user
	*objects.Model
}

func newModel(t *testing.T, o cloneset.Options) *model {
	t.Helper()
	return newModelWith(t, o, func(c client.WithWatch) client.WithWatch { return c })
}

// newModelWith gives the reconciler another client.
func newModelWith(t *testing.T, o cloneset.Options, wrap func(client.WithWatch) client.WithWatch) *model {
	t.Helper()
	m := &model{Model: objects.NewModel(t, &v1beta1.CloneSetList{}, v1beta1.AddToScheme)}
	m.Collects = true
	m.user = user{T: t, client: m.Server, namespace: "shop"}
	m.Kubelet.Unready = func(pod *corev1.Pod) bool { _, is := pod.Annotations[unready]; return is }
	for _, o := range []client.Object{
		&corev1.Pod{},
		&corev1.PersistentVolumeClaim{},
		&appsv1.ControllerRevision{},
		workloads.PullJobMetadata(&v1beta1.ImagePullJob{}),
	} {
		if err := owned.Index(t.Context(), m.Server, o); err != nil {
			t.Fatal(err)
		}
	}
	m.start(o, wrap)
	return m
}

// start starts another reconciler in the place of the one before.
func (m *model) start(o cloneset.Options, wrap func(client.WithWatch) client.WithWatch) {
	m.Helper()
	m.Reconciler = m.reconciler(o, wrap(m.Server))
}

func (m *model) reconciler(o cloneset.Options, c client.Client) *cloneset.Reconciler {
	m.Helper()
	o.Now, o.Recorder = m.Now, m.Server
	if o.Live == nil {
		o.Live = m.Live
	}
	r, err := cloneset.New(c, o)
	if err != nil {
		m.Fatal(err)
	}
	return r
}

// eventually runs until the set is as expected. It moves the clock to the next requeue where nothing else is left to
// do.
func (m *model) eventually(set *v1beta1.CloneSet, check check) {
	m.Helper()
	m.Eventually(func() error {
		m.look(set)
		if err := check(set, m.pods(set)); err != nil {
			return fmt.Errorf("%w\nstatus: %+v", err, set.Status)
		}
		return nil
	})
}

// stays expects a set when there is nothing left to do now.
func (m *model) stays(set *v1beta1.CloneSet, check check) {
	m.Helper()
	m.Still()
	m.look(set)
	if err := check(set, m.pods(set)); err != nil {
		m.Error(err)
	}
}

// emitted expects a number of events of a reason about a set.
func (m *model) emitted(reason string, n int) check {
	return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if got := m.Server.Events(set, reason); len(got) != n {
			return fmt.Errorf("events %s: %v, want %d", reason, got, n)
		}
		return nil
	}
}

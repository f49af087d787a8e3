package persistentpodstate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/persistentpodstate"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/test/objects"
)

const (
	zone = "topology.kubernetes.io/zone"
	host = "kubernetes.io/hostname"
)

// model runs the reconciler over objects in memory. It also is the StatefulSet, the scheduler and the kubelet of its
// pods.
type model struct {
	testing.TB
	*objects.Model

	// created counts pods, whose UIDs differ.
	created int
}

func newModel(t testing.TB) *model {
	t.Helper()
	m := &model{TB: t, Model: objects.NewModel(t, &v1beta1.PersistentPodStateList{}, v1beta1.AddToScheme)}
	if err := owned.Index(t.Context(), m.Server, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	m.through(interceptor.Funcs{})
	return m
}

// through starts another process, whose requests go through an interceptor, but for its live reads.
func (m *model) through(f interceptor.Funcs) {
	m.Helper()
	r, err := persistentpodstate.New(interceptor.NewClient(m.Server, f), persistentpodstate.Options{
		Now: m.Now, Recorder: m.Server, Live: m.Server,
	})
	if err != nil {
		m.Fatal(err)
	}
	m.Reconciler = r
}

// turn reconciles db.
func (m *model) turn() (ctrl.Result, error) {
	return m.Reconciler.Reconcile(m.Context(), ctrl.Request{NamespacedName: types.NamespacedName{
		Namespace: "default", Name: "db",
	}})
}

// must reconciles without an error.
func (m *model) must() ctrl.Result {
	m.Helper()
	result, err := m.turn()
	if err != nil {
		m.Fatal(err)
	}
	return result
}

// writes since the last call.
func (m *model) writes() []string {
	return slices.DeleteFunc(m.Server.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET") })
}

func (m *model) remove(o client.Object) {
	m.Helper()
	if err := m.Server.Delete(m.Context(), o); err != nil {
		m.Fatal(err)
	}
}

func (m *model) node(name, inZone string) {
	m.Helper()
	m.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zone: inZone, host: name}}})
}

// set stores the StatefulSet db.
func (m *model) set(replicas int32, annotations map[string]string) {
	m.Helper()
	m.Put(&appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "set", Annotations: annotations},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas},
	})
}

// state stores a PersistentPodState of db, with a required zone and a preferred hostname.
func (m *model) state(change ...func(*podstate.State)) {
	m.Helper()
	s := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "state", Generation: 1}}
	s.Spec.TargetReference = v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}
	s.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{zone}}
	s.Spec.PreferredPersistentTopology = []v1beta1.PreferredTopologyTerm{{
		Weight: 10, Preference: v1beta1.NodeTopologyTerm{Keys: []string{host}},
	}}
	for _, c := range change {
		c(s)
	}
	m.Put(s)
}

// stored returns the PersistentPodState db; nil for none.
func (m *model) stored() *podstate.State {
	s := &podstate.State{}
	if m.Server.Get(m.Context(), types.NamespacedName{Namespace: "default", Name: "db"}, s) != nil {
		return nil
	}
	return s
}

// run creates a pod as the StatefulSet does, takes it through the step of admission, and schedules it to a node that
// fits: one that the pod prefers, else the preferred one, else any.
func (m *model) run(name string, preferred ...string) *corev1.Pod {
	m.Helper()
	m.created++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(fmt.Sprintf("pod-%d", m.created)),
		CreationTimestamp: metav1.Time{Time: m.Clock},
		OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(m.workload(), native())},
	}}
	p.Status.Phase = corev1.PodPending
	if s := m.stored(); s != nil {
		if steered := podstate.Steer(p, s); steered != nil {
			p = steered
		}
	}
	var nodes corev1.NodeList
	if err := m.Server.List(m.Context(), &nodes); err != nil {
		m.Fatal(err)
	}
	best := -1
	for i := range nodes.Items {
		n, points := &nodes.Items[i], 0
		if a := p.Spec.Affinity; a != nil {
			for _, term := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				if e := term.Preference.MatchExpressions[0]; n.Labels[e.Key] == e.Values[0] {
					points += 10
				}
			}
		}
		if slices.Contains(preferred, n.Name) {
			points++
		}
		if labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)) && points > best {
			best, p.Spec.NodeName, p.Status.Phase = points, n.Name, corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
	}
	m.Put(p)
	return p
}

func native() schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind("StatefulSet") }

// lose removes a pod of the StatefulSet.
func (m *model) lose(name string) {
	m.Helper()
	m.remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
}

// picture is the records, the condition and the pods.
func (m *model) picture() string {
	var lines []string
	s := m.stored()
	if s == nil {
		lines = append(lines, "no PersistentPodState")
	} else {
		for _, name := range slices.Sorted(maps.Keys(s.Status.PodStates)) {
			r := s.Status.PodStates[name]
			line := "record " + name + ": " + r.NodeName
			for _, k := range []string{zone, host} {
				if v, is := r.NodeTopologyLabels[k]; is {
					line += " " + v
				}
			}
			if r.MissingSince != nil {
				line += " missing"
			}
			if r.ReleasedAt != nil {
				line += " released"
			}
			lines = append(lines, line)
		}
		for _, c := range s.Status.Conditions {
			lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	for _, p := range m.Pods() {
		where := p.Spec.NodeName
		if where == "" {
			where = "pending"
		}
		if p.DeletionTimestamp != nil {
			where += ", terminating"
		}
		lines = append(lines, "pod "+p.Name+": "+where)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// settle reconciles until nothing is written, and the clock moves to the next requeue of at most some time.
func (m *model) settle(within time.Duration) {
	m.Helper()
	for until := m.Clock.Add(within); ; {
		before := m.Server.Version()
		after := m.must().RequeueAfter
		if m.Server.Version() != before {
			continue
		}
		if after == 0 || m.Clock.Add(after).After(until) {
			return
		}
		m.Advance(after)
	}
}

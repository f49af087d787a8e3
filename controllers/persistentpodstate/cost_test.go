package persistentpodstate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/podstate"
)

func (*model) workload() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: types.UID("set")}}
}

// Five hundred pods that become ready cost one write, a pass without a change none, a restart none, and the end of half
// of the pods one.
func TestCost(t *testing.T) {
	const n = 500
	m := newModel(t)
	m.node("n1", "a")
	m.node("n2", "b")
	m.set(n, nil)
	m.state()
	for i := range int32(n) {
		m.run(ordinals.Name("db", i), "n1")
	}
	turn := func(what string, want int) {
		t.Helper()
		m.Server.Requests()
		begun := time.Now()
		m.must()
		if got := m.writes(); len(got) != want {
			t.Errorf("%s: %d writes, want %d: %v", what, len(got), want, got)
		}
		t.Logf("%s: %v", what, time.Since(begun).Round(time.Millisecond))
	}
	turn("500 pods", 1)
	turn("an idle pass", 0)
	m.through(interceptor.Funcs{})
	turn("a restart", 0)
	for i := range int32(n / 2) {
		m.lose(ordinals.Name("db", n/2+i))
	}
	turn("pods are gone that the set wants", 0)
	m.set(n/2, nil)
	turn("a smaller set", 1)
	turn("an idle pass", 0)
	if got := len(m.stored().Status.PodStates); got != n/2 {
		t.Errorf("%d records", got)
	}
}

// controlled makes the StatefulSet db control a PersistentPodState.
func controlled(s *podstate.State) {
	s.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "set", Controller: ptr.To(true),
	}}
}

// TestTakeover: a status as the reference leaves it is not written, with or without annotations, and neither is the
// object that it has generated.
func TestTakeover(t *testing.T) {
	m := newModel(t)
	m.node("n1", "a")
	m.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare", Labels: map[string]string{zone: "b"}}})
	m.set(3, map[string]string{
		v1beta1.AnnotationAutoGeneratePersistentPodState: "true", v1beta1.AnnotationRequiredPersistentTopology: zone,
		v1beta1.AnnotationPreferredPersistentTopology: host, v1beta1.AnnotationPersistentPodAnnotations: "address",
	})
	m.state(controlled, func(s *podstate.State) {
		s.Spec.PreferredPersistentTopology[0].Weight = 100
		s.Spec.PersistentPodAnnotations = []v1beta1.PersistentPodAnnotation{{Key: "address"}}
		onN1 := v1beta1.PodState{NodeName: "n1", NodeTopologyLabels: map[string]string{zone: "a", host: "n1"}}
		s.Status = v1beta1.PersistentPodStateStatus{ObservedGeneration: 1, PodStates: map[string]v1beta1.PodState{
			"db-0": *onN1.DeepCopy(),
			"db-1": {NodeName: "bare", NodeTopologyLabels: map[string]string{zone: "b"}},
			"db-2": onN1,
		}}
		onN1.Annotations = map[string]string{"address": "10.0.0.1"}
		s.Status.PodStates["db-0"] = onN1
	})
	p := m.run("db-0", "n1")
	p.Annotations["address"] = "10.0.0.1"
	m.Put(p)
	m.run("db-1", "bare")
	m.run("db-2", "n1")
	m.Server.Requests()
	m.must()
	if got := m.writes(); len(got) > 0 {
		t.Errorf("writes %v", got)
	}
}

// TestFaults: a rejected creation is an event and no retry. A rejected update is an event, and the stored object stays
// in force. A failed status is tried again, and the status of an older object soon.
func TestFaults(t *testing.T) {
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentPodState"}, "db", field.ErrorList{
		field.Invalid(field.NewPath("spec", "targetRef"), "db", "must not be the target of another"),
	})
	m := newModel(t)
	m.node("n1", "a")
	m.through(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refused
		},
	})
	m.set(1, map[string]string{
		v1beta1.AnnotationAutoGeneratePersistentPodState: "true", v1beta1.AnnotationRequiredPersistentTopology: zone,
	})
	rejected := func(want int) {
		t.Helper()
		if events := m.Server.Events(m.workload(), "FailedGenerate"); len(events) != want ||
			!strings.Contains(events[0].Message, "spec.targetRef") {
			t.Errorf("events %v", events)
		}
	}
	for range 2 {
		if _, err := m.turn(); !errors.Is(err, reconcile.TerminalError(nil)) {
			t.Errorf("a rejected creation is %v", err)
		}
		rejected(1)
	}
	m.state(controlled)
	for range 2 {
		m.must()
		rejected(2)
	}
	if n := m.stored().Status.ObservedGeneration; n != 1 {
		t.Errorf("the status is of generation %d", n)
	}
	m.remove(m.stored())
	m.set(1, nil)
	m.state()
	m.run("db-0", "n1")
	var answer error
	m.through(interceptor.Funcs{SubResourcePatch: func(
		context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption,
	) error {
		return answer
	}})
	answer = errors.New("down")
	if _, err := m.turn(); !errors.Is(err, answer) {
		t.Errorf("a failed status is %v", err)
	}
	answer = apierrors.NewConflict(schema.GroupResource{}, "db", errors.New("changed"))
	if result := m.must(); result.RequeueAfter != time.Second {
		t.Errorf("an older object comes back after %s", result.RequeueAfter)
	}
	m.through(interceptor.Funcs{})
	m.must()
	if diff := cmp.Diff("pod db-0: n1\nrecord db-0: n1 a n1", m.picture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRecordsAreBounded: records that the API server would refuse are an event, and those before stay.
func TestRecordsAreBounded(t *testing.T) {
	m := newModel(t)
	m.node("n1", "a")
	m.set(20, nil)
	m.state(func(s *podstate.State) {
		s.Spec.PersistentPodAnnotations = []v1beta1.PersistentPodAnnotation{{Key: "big"}}
	})
	for i := range int32(20) {
		p := m.run(ordinals.Name("db", i), "n1")
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, "big", strings.Repeat("<", 10<<10)) // stored as six times as much
		m.Put(p)
		m.must()
	}
	events, n := m.Server.Events(m.stored(), "TooManyRecords"), len(m.stored().Status.PodStates)
	if len(events) != 1 || n != 17 {
		t.Errorf("%d records, events %v", n, events)
	}
}

// Targets that cannot be read keep the records, with one event.
func TestUnsupported(t *testing.T) {
	for name, ref := range map[string]v1beta1.TargetReference{
		"a Deployment": {APIVersion: "apps/v1", Kind: "Deployment", Name: "db"},
		"no version":   {APIVersion: "a/b/c", Kind: "StatefulSet", Name: "db"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			m.state(func(s *podstate.State) {
				s.Spec.TargetReference = ref
				s.Status.PodStates = map[string]v1beta1.PodState{"db-0": {NodeName: "n1"}}
			})
			m.must()
			m.must()
			if events := m.Server.Events(m.stored(), "UnsupportedTarget"); len(events) != 1 ||
				len(m.stored().Status.PodStates) != 1 {
				t.Errorf("events %v, state %+v", events, m.stored().Status)
			}
		})
	}
}

// A stale cache, as that of a new leader, shows earlier annotations of a StatefulSet. It deletes no records, since the
// API server is asked first. The PersistentPodState that it generates is deleted when the cache follows.
func TestStaleAnnotations(t *testing.T) {
	m := newModel(t)
	m.node("n1", "a")
	asks := map[string]string{
		v1beta1.AnnotationAutoGeneratePersistentPodState: "true", v1beta1.AnnotationRequiredPersistentTopology: zone,
	}
	m.set(1, asks)
	m.must()
	m.run("db-0", "n1")
	m.settle(time.Minute)
	var seen map[string]string
	m.through(interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, name client.ObjectKey, into client.Object, o ...client.GetOption,
	) error {
		err := c.Get(ctx, name, into, o...)
		if into.GetObjectKind().GroupVersionKind().Kind == "StatefulSet" {
			into.SetAnnotations(seen)
		}
		return err
	}})
	m.Server.Requests()
	m.must()
	if s := m.stored(); s == nil || len(s.Status.PodStates) != 1 || len(m.writes()) > 0 {
		t.Fatalf("the annotations are there, and are not seen yet: %+v", s)
	}
	m.set(1, nil)
	m.must()
	if s := m.stored(); s != nil {
		t.Errorf("the annotations are gone: %+v", s)
	}
	seen = asks
	m.must()
	seen = nil
	m.must()
	if s := m.stored(); s != nil {
		t.Errorf("the annotations are gone, and seen to be: %+v", s)
	}
}

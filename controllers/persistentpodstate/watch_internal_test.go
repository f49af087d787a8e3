package persistentpodstate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
)

// recorder is a queue that keeps what is added, with a mark where it is added later.
type recorder struct {
	queue
	added []string
}

func (r *recorder) Add(request ctrl.Request) { r.added = append(r.added, request.Name) }

func (r *recorder) AddAfter(request ctrl.Request, _ time.Duration) {
	r.added = append(r.added, request.Name+" later")
}

func (r *recorder) took() string {
	slices.Sort(r.added)
	all := strings.Join(slices.Compact(r.added), ",")
	r.added = nil
	return all
}

func untyped(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// TestEvents: which events reconcile what. db refers to a StatefulSet, has a record on n1 and one on a node that is
// gone.
func TestEvents(t *testing.T) {
	r := &Reconciler{index: podstates.NewIndex()}
	q := &recorder{}
	state := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", Generation: 1}}
	state.Spec.TargetReference = v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	state.Status.PodStates = map[string]v1beta1.PodState{
		"web-0": {NodeName: "n1"}, "web-1": {NodeName: "gone", MissingSince: &metav1.Time{Time: time.Unix(1, 0)}},
	}
	states := r.stateEvents()
	is := func(why, want string) {
		t.Helper()
		if diff := cmp.Diff(want, q.took()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
	states.Create(t.Context(), event.CreateEvent{Object: untyped(t, state)}, q)
	is("a new object", "db")
	change := func(h handler.EventHandler, was client.Object, edit func(client.Object)) {
		t.Helper()
		now, ok := was.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatal("no object")
		}
		edit(now)
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: now}, q)
	}
	change(states, untyped(t, state), func(o client.Object) { o.SetGeneration(2) })
	is("another spec", "db")
	change(states, untyped(t, state), func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) })
	is("another annotation", "db")
	change(states, untyped(t, state), func(client.Object) {})
	is("another status", "db later")

	controller := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-0",
		Annotations: map[string]string{kruise.InjectedPersistentPodStateKey: "earlier"}, // it is gone, and does not matter
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1beta2", Kind: "StatefulSet", Name: "web", Controller: &controller,
		}},
	}}
	pod.Spec.NodeName = "n1"
	edit := func(f func(*corev1.Pod)) func(client.Object) {
		return func(o client.Object) {
			if p, is := o.(*corev1.Pod); is {
				f(p)
			}
		}
	}
	ready := edit(func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
	running := pod.DeepCopy()
	ready(running)
	pods := r.podEvents()
	for why, c := range map[string]struct {
		was  *corev1.Pod
		edit func(client.Object)
		want string
	}{
		"becomes ready":  {pod, ready, "db later"},
		"stays ready":    {running, edit(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }), ""},
		"is not ready":   {running, edit(func(p *corev1.Pod) { p.Status.Conditions = nil }), ""},
		"terminates":     {running, edit(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), "db later"},
		"fails":          {running, edit(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "db later"},
		"of another one": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}, ready, ""},
	} {
		change(pods, c.was, c.edit)
		is("a pod "+why, c.want)
	}
	pods.Create(t.Context(), event.CreateEvent{Object: running}, q)
	is("a new pod", "")
	pods.Delete(t.Context(), event.DeleteEvent{Object: pod}, q)
	is("a pod is gone", "db later")

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	nodes := r.nodeEvents()
	change(nodes, node, func(o client.Object) { o.SetResourceVersion("2") })
	is("a heartbeat", "")
	change(nodes, node, func(o client.Object) { o.SetLabels(map[string]string{"zone": "a"}) })
	is("another label", "db later")
	nodes.Create(t.Context(), event.CreateEvent{Object: &corev1.Node{}}, q)
	is("a new node", "db later")
	nodes.Delete(t.Context(), event.DeleteEvent{Object: node}, q)
	is("a recorded node is gone", "db later")
	nodes.Delete(t.Context(), event.DeleteEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}}, q)
	is("another node is gone", "")

	set := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": "default", "name": "web",
	}}}
	asking := set.DeepCopy()
	asking.SetAnnotations(map[string]string{v1beta1.AnnotationAutoGeneratePersistentPodState: "true"})
	workloads := r.workloadEvents(statefulSets()[0].GroupKind())
	workloads.Create(t.Context(), event.CreateEvent{Object: set}, q)
	is("a workload with an object", "db")
	workloads.Create(t.Context(), event.CreateEvent{Object: asking}, q)
	is("a workload that asks", "db,web")
	change(workloads, asking, func(o client.Object) { o.SetAnnotations(nil) })
	is("a workload that asks no more", "db,web")
	change(workloads, set, func(o client.Object) { o.SetResourceVersion("2") })
	is("a status of a workload", "")
	change(workloads, set, func(o client.Object) { o.SetGeneration(2) })
	is("another size", "db")
	workloads.Delete(t.Context(), event.DeleteEvent{Object: set}, q)
	is("a workload is gone", "db")
	r.workloadEvents(statefulSets()[1].GroupKind()).Create(t.Context(), event.CreateEvent{Object: set}, q)
	is("a workload of another group", "")

	states.Delete(t.Context(), event.DeleteEvent{Object: untyped(t, state)}, q)
	is("the object is gone, and the workload may ask", "db,web")
	pods.Delete(t.Context(), event.DeleteEvent{Object: pod}, q)
	is("nothing refers to the pod", "")
}

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
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// recorder is a queue that keeps what is added, with a mark where it is added later.
type recorder struct {
	watches.Queue
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
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-0",
		Annotations: map[string]string{kruise.InjectedPersistentPodStateKey: "earlier"}, // it is gone, and does not matter
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1beta2", Kind: "StatefulSet", Name: "web", Controller: ptr.To(true),
		}},
	}}
	pod.Spec.NodeName = "n1"
	ready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	running := changed(pod, ready)
	node, otherNode := &corev1.Node{}, &corev1.Node{}
	node.Name, otherNode.Name = "n1", "n2"
	set := &unstructured.Unstructured{Object: map[string]any{}}
	set.SetNamespace("default")
	set.SetName("web")
	asking := set.DeepCopy()
	asking.SetAnnotations(map[string]string{v1beta1.AnnotationAutoGeneratePersistentPodState: "true"})
	raw := untyped(t, state)
	states, pods, nodes := r.stateEvents(), r.podEvents(), r.nodeEvents()
	workloads, advanced := r.workloadEvents(statefulSets()[0].GroupKind()), r.workloadEvents(statefulSets()[1].GroupKind())
	type object = client.Object
	for _, c := range []struct {
		why     string
		handler handler.EventHandler
		// before is nil for a creation, after for a deletion.
		before, after object
		want          string
	}{
		{why: "a new object", handler: states, after: raw, want: "db"},
		{"another spec", states, raw, changed(raw, func(o object) { o.SetGeneration(2) }), "db"},
		{"another annotation", states, raw, changed(raw, func(o object) { o.SetAnnotations(asking.GetAnnotations()) }), "db"},
		{"another status", states, raw, raw, "db later"},
		{why: "a new pod", handler: pods, after: running},
		{"a pod becomes ready", pods, pod, running, "db later"},
		{"a pod stays ready", pods, running, changed(running, func(p *corev1.Pod) { p.Generation = 2 }), ""},
		{"a pod is not ready", pods, running, pod, ""},
		{
			"a pod terminates", pods, running,
			changed(running, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), "db later",
		},
		{
			"a pod fails", pods, running,
			changed(running, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "db later",
		},
		{"a pod without an owner becomes ready", pods, &corev1.Pod{}, changed(&corev1.Pod{}, ready), ""},
		{"a pod is gone", pods, pod, nil, "db later"},
		{"a heartbeat", nodes, node, changed(node, func(n *corev1.Node) { n.ResourceVersion = "2" }), ""},
		{
			"another label", nodes, node,
			changed(node, func(n *corev1.Node) { n.Labels = map[string]string{"zone": "a"} }), "db later",
		},
		{why: "a new node", handler: nodes, after: otherNode, want: "db later"},
		{"a recorded node is gone", nodes, node, nil, "db later"},
		{"another node is gone", nodes, otherNode, nil, ""},
		{why: "a workload with an object", handler: workloads, after: set, want: "db"},
		{why: "a workload that asks", handler: workloads, after: asking, want: "db,web"},
		{"a workload that asks no more", workloads, asking, set, "db,web"},
		{"a status of a workload", workloads, set, changed(set, func(o object) { o.SetResourceVersion("2") }), ""},
		{"another size", workloads, set, changed(set, func(o object) { o.SetGeneration(2) }), "db"},
		{"a workload is gone", workloads, set, nil, "db"},
		{why: "a workload of another group", handler: advanced, after: set},
		{"the object is gone, and the workload may ask", states, raw, nil, "db,web"},
		{"nothing refers to the pod", pods, pod, nil, ""},
	} {
		switch {
		case c.before == nil:
			c.handler.Create(t.Context(), event.CreateEvent{Object: c.after}, q)
		case c.after == nil:
			c.handler.Delete(t.Context(), event.DeleteEvent{Object: c.before}, q)
		default:
			c.handler.Update(t.Context(), event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}, q)
		}
		if diff := cmp.Diff(c.want, q.took()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.why, diff)
		}
	}
}

// changed returns a changed copy. The change takes the type of the object, or any object.
func changed[T client.Object, F client.Object](before T, change func(F)) T {
	after, _ := before.DeepCopyObject().(T)
	if of, ok := any(after).(F); ok {
		change(of)
	}
	return after
}

package broadcastjob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/test/rig/storedtest"
	"github.com/kruisekit/kruisekit/test/rig/watchestest"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// A change of a node in what decides where pods fit reconciles the jobs that have not ended.
func TestNodeEvents(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(scheme, func() time.Time { return time.Unix(1_800_000_000, 0) })
	r, err := New(server, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unfinished().Index(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	for name, conditions := range map[string][]v1beta1.JobCondition{
		"a": nil, "b": nil, "ended": {{Type: v1beta1.JobComplete, Status: corev1.ConditionTrue}},
	} {
		j := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
		j.Status.Conditions = conditions
		if err := server.Put(j); err != nil {
			t.Fatal(err)
		}
	}
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{}}}
		change(n)
		return n
	}
	same := node(func(*corev1.Node) {})
	for name, c := range map[string]struct {
		before, after *corev1.Node
		want          string
	}{
		"joins": {nil, same, "a b"},
		"goes":  {same, nil, "a b"},
		"heartbeat": {before: same, after: node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready"}}
		})},
		"labelled": {same, node(func(n *corev1.Node) { n.Labels["disk"] = "ssd" }), "a b"},
		"cordoned": {same, node(func(n *corev1.Node) { n.Spec.Unschedulable = true }), "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := watchestest.Happen(t.Context(), r.nodeEvents(), c.before, c.after); got != c.want {
				t.Errorf("reconciles %q, want %q", got, c.want)
			}
		})
	}
	q := &watchestest.Queue{}
	r.nodeEvents().Create(t.Context(), event.CreateEvent{Object: same, IsInInitialList: true}, q)
	if got := q.Taken(); got != "" {
		t.Errorf("the start of the process reconciles %q through nodes", got)
	}
}

// Which changes of pods reconcile their job.
func TestPodChanges(t *testing.T) {
	cases := map[string]struct {
		why    string
		change func(*corev1.Pod)
		want   bool
	}{
		"bound": {
			"a pass looks at the node that the pod is pinned to", func(p *corev1.Pod) { p.Spec.NodeName = "n" }, false,
		},
		"running": {
			"a pod that runs is active, as before", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, false,
		},
		"ready": {
			"no pass looks at readiness",
			func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}} }, false,
		},
		"succeeded":   {"the pod has ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		"failed":      {"the pod has ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"terminating": {"the node may run the job again", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, true},
		"restarted": {"the pod may count as failed", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
		}, true},
		"owner": {
			"another controller owns the pod", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{UID: "2"}} },
			true,
		},
		"another": {"a pod of the same name", func(p *corev1.Pod) { p.UID = "2" }, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{UID: "1"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure},
			}
			eligible.Pin(&before.Spec, "n")
			after := before.DeepCopy()
			c.change(after)
			if got := podChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
				t.Errorf("%s: %t", c.why, got)
			}
		})
	}
	before := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}
	after := before.DeepCopy()
	after.Status.InitContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
	if podChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("without OnFailure restarts do not count")
	}
}

// Which changes of a job reconcile it.
func TestJobChanges(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	cases := map[string]struct {
		why    string
		change func(*v1beta1.BroadcastJob)
		want   bool
	}{
		"resync": {"a resync is a safety net", func(j *v1beta1.BroadcastJob) { j.ResourceVersion = "1" }, true},
		"counters": {
			"the reconciler wrote them", func(j *v1beta1.BroadcastJob) { j.Status.Active, j.Status.Desired = 3, 4 }, false,
		},
		"label": {
			"no pass looks at the labels of a job", func(j *v1beta1.BroadcastJob) { j.Labels = map[string]string{"a": "b"} },
			false,
		},
		"spec":  {"the spec decides", func(j *v1beta1.BroadcastJob) { j.Generation = 2 }, true},
		"phase": {"a user may reset it", func(j *v1beta1.BroadcastJob) { j.Status.Phase = "" }, true},
		"condition": {
			"the job has ended",
			func(j *v1beta1.BroadcastJob) { j.Status.Conditions = []v1beta1.JobCondition{{Type: "Complete"}} }, true,
		},
		"start": {"the deadline depends on it", func(j *v1beta1.BroadcastJob) { j.Status.StartTime = &now }, true},
		"end": {
			"the time to live depends on it", func(j *v1beta1.BroadcastJob) { j.Status.CompletionTime = &now }, true,
		},
		"deleted": {"the ledger forgets it", func(j *v1beta1.BroadcastJob) { j.DeletionTimestamp = &now }, true},
		"another": {"a job of the same name", func(j *v1beta1.BroadcastJob) { j.UID = "2" }, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := &v1beta1.BroadcastJob{
				ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1, ResourceVersion: "1"},
				Status:     v1beta1.BroadcastJobStatus{Phase: "running"},
			}
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			c.change(after)
			if got := withoutCounters().Update(event.UpdateEvent{
				ObjectOld: storedtest.Raw(t, gvk(), before), ObjectNew: storedtest.Raw(t, gvk(), after),
			}); got != c.want {
				t.Errorf("%s: %t", c.why, got)
			}
		})
	}
}

package broadcastjob

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/apiserver"
	"github.com/kruisekit/kruisekit/internal/stored/storedtest"
	"github.com/kruisekit/kruisekit/internal/watches/watchestest"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// A change of a node reconciles the jobs that it concerns, and no other one.
func TestNodeEvents(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(scheme, func() time.Time { return time.Unix(1_800_000_000, 0) })
	r, err := New(server, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(server.IndexField(t.Context(), &corev1.Pod{}, nodeField, nodeOf),
		r.unfinished.Index(t.Context(), server)); err != nil {
		t.Fatal(err)
	}
	job := func(name string, change func(*v1beta1.BroadcastJob)) *v1beta1.BroadcastJob {
		j := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name),
		}}
		change(j)
		if err := server.Put(j); err != nil {
			t.Fatal(err)
		}
		return j
	}
	job("all", func(*v1beta1.BroadcastJob) {})
	job("ssd", func(j *v1beta1.BroadcastJob) { j.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
	job("tolerant", func(j *v1beta1.BroadcastJob) {
		j.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	job("ended", func(j *v1beta1.BroadcastJob) {
		j.Status.Conditions = []v1beta1.JobCondition{{Type: v1beta1.JobComplete, Status: corev1.ConditionTrue}}
	})
	busy := job("busy", func(j *v1beta1.BroadcastJob) {
		j.Spec.Template.Spec.NodeSelector = map[string]string{"none": "such"}
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "busy-1", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(busy, gvk())},
	}}
	pod.Spec.NodeName = "n"
	if err := server.Put(pod); err != nil {
		t.Fatal(err)
	}
	node := func(name string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
		if change != nil {
			change(n)
		}
		return n
	}
	taint := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: effect}} }
	}
	cases := map[string]struct {
		why           string
		before, after *corev1.Node
		want          string
	}{
		"joins": {"the jobs that run there", nil, node("m", nil), "all tolerant"},
		"joins with": {
			why:   "its labels count",
			after: node("m", func(n *corev1.Node) { n.Labels["disk"] = "ssd" }),
			want:  "all ssd tolerant",
		},
		"goes": {"the jobs that ran there, and those with a pod", node("n", nil), nil, "all busy tolerant"},
		"heartbeat": {
			why:    "no job reads conditions",
			before: node("n", nil),
			after:  node("n", func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready"}} }),
		},
		"other label": {
			why:    "no job reads this label",
			before: node("n", nil),
			after:  node("n", func(n *corev1.Node) { n.Labels["team"] = "a" }),
		},
		"read label": {
			why:    "one job reads this label",
			before: node("n", nil),
			after:  node("n", func(n *corev1.Node) { n.Labels["disk"] = "ssd" }),
			want:   "ssd",
		},
		"tainted": {
			why:    "jobs that do not tolerate the taint",
			before: node("n", nil),
			after:  node("n", taint(corev1.TaintEffectNoSchedule)),
			want:   "all",
		},
		"evicting": {
			why:    "the pod of another job must leave",
			before: node("n", func(n *corev1.Node) { n.Labels["none"] = "such" }),
			after:  node("n", func(n *corev1.Node) { taint(corev1.TaintEffectNoExecute)(n) }),
			want:   "all busy",
		},
		"cordoned": {
			why:    "jobs that do not tolerate a cordon",
			before: node("n", nil),
			after:  node("n", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
			want:   "all",
		},
		"without slots": {
			why:    "a node without room for pods fits no job",
			before: node("n", nil),
			after:  node("n", func(n *corev1.Node) { n.Status.Allocatable = nil }),
			want:   "all tolerant",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := watchestest.Happen(t.Context(), r.nodeEvents(), c.before, c.after); got != c.want {
				t.Errorf("%s: reconciles %q, want %q", c.why, got, c.want)
			}
		})
	}
	q := &watchestest.Queue{}
	r.nodeEvents().Create(t.Context(), event.CreateEvent{Object: node("m", nil), IsInInitialList: true}, q)
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

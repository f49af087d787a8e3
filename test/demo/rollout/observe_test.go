package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/demo/screen"
)

type option func(*corev1.Pod)

func pod(uid types.UID, image string, options ...option) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Labels: map[string]string{}}}
	p.Spec.Containers = []corev1.Container{{Image: image}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, o := range options {
		o(&p)
	}
	return p
}

func ran(times int32) option {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: times}}
	}
}

func in(state kruise.LifecycleState) option {
	return func(p *corev1.Pod) { p.Labels[kruise.LifecycleStateKey] = string(state) }
}

func leaving(p *corev1.Pod)  { p.DeletionTimestamp = &metav1.Time{} }
func starting(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func more(p *corev1.Pod)     { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL"}} }

func TestObserve(t *testing.T) {
	before := remember([]corev1.Pod{pod("a", "web:1", ran(1)), pod("b", "web:1"), pod("c", "web:1", leaving)})
	order := []string{"web:1", "web:2"}
	cases := map[string]struct {
		why   string
		pods  []corev1.Pod
		order []string
		want  observed
	}{
		"nothing": {"an empty cluster is a quiet one", nil, order, observed{quiet: true}},
		"in place": {
			why:   "the same pods, one container has restarted once more",
			pods:  []corev1.Pod{pod("a", "web:2", ran(2), in(kruise.LifecycleStateNormal)), pod("b", "web:1")},
			order: order,
			want: observed{
				revisions: []screen.Revision{{Name: "web:1", Ready: 1}, {Name: "web:2", Ready: 1}},
				updated:   1,
				kept:      2,
				restarted: 1,
				quiet:     true,
			},
		},
		"not settled": {
			"somebody is about to write its state",
			[]corev1.Pod{pod("a", "web:2", ran(2), in(kruise.LifecycleStateUpdating))},
			order,
			observed{revisions: []screen.Revision{{Name: "web:2", Ready: 1}}, updated: 1, kept: 1, restarted: 1},
		},
		"by new pods": {
			why:   "one leaves and is kept no more, one is new and was not there before; so is one that left then",
			pods:  []corev1.Pod{pod("a", "web:1", leaving), pod("d", "web:2", starting), pod("c", "web:2")},
			order: order,
			want: observed{
				revisions: []screen.Revision{{Name: "web:1", Leaving: 1}, {Name: "web:2", Ready: 1, Starting: 1}},
				updated:   2,
				started:   2,
			},
		},
		"another template": {
			why:   "the image alone is not the revision",
			pods:  []corev1.Pod{pod("a", "web:2", ran(1)), pod("b", "web:2", more)},
			order: append(order, "web:2 +LEVEL"),
			want: observed{
				revisions: []screen.Revision{{Name: "web:2", Ready: 1}, {Name: "web:2 +LEVEL", Ready: 1}},
				updated:   1,
				kept:      2,
				quiet:     true,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := observe(c.pods, before, c.order)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(observed{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// Check fails where a rollout in place has not kept every pod and restarted one container in each changed one.
func TestCheck(t *testing.T) {
	good := Row{Part: newImage, Workload: cloneSetName, Row: screen.Row{Pods: 30, Kept: 30, Changed: 15, Restarted: 15}}
	lost, again, fresh := good, good, good
	lost.Kept, again.Restarted, fresh.Started = 29, 16, 1
	recreated := Row{Part: newVariable, Workload: cloneSetName, Row: screen.Row{Pods: 30, Started: 30, Changed: 30}}
	other := Row{Part: newImage, Workload: deploymentName, Row: screen.Row{Pods: 30, Started: 30, Changed: 30}}
	for name, c := range map[string]struct {
		rows []Row
		ok   bool
	}{
		"as told":           {[]Row{good, other, good, recreated}, true},
		"a pod is lost":     {[]Row{good, lost}, false},
		"restarted twice":   {[]Row{again}, false},
		"a pod is new":      {[]Row{fresh}, false},
		"nothing was shown": {[]Row{recreated, other}, false},
	} {
		if err := Check(c.rows); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

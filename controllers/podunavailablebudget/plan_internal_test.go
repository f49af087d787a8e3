package podunavailablebudget

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/pub"
)

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// newSnapshot is of a budget that selects pods with app=web, and lets one be unavailable.
func newSnapshot(name string, pods ...*corev1.Pod) *snapshot {
	o := &podUnavailableBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Generation: 1,
	}}
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	o.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	s := &snapshot{object: o, pods: pods}
	s.budget, s.notes = pub.Read(o)
	s.budgets = []pub.Budget{s.budget}
	return s
}

// newPod is available, and has the label app=web.
func newPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
	}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func terminating(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon())) }

func stampedWith(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{kruise.PodRelatedPubKey: name} }
}

func controlledBy(uid types.UID) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: string(uid), UID: uid, Controller: ptr.To(true),
		}}
	}
}

func TestSettles(t *testing.T) {
	records := func(all ...time.Duration) map[string]metav1.Time {
		of := map[string]metav1.Time{}
		for i, d := range all {
			of[string(rune('a'+i))] = metav1.NewTime(noon().Add(-d))
		}
		return of
	}
	cases := map[string]struct {
		why           string
		before, after pub.Status
		want          time.Duration
	}{
		"the oldest decides": {
			why:    "evictions that go on must not hold the write back for ever",
			before: pub.Status{DisruptedPods: records(time.Second, 4*time.Second), CurrentAvailable: 3},
			want:   time.Second,
		},
		"updated": {
			why:    "records of updates are alike",
			before: pub.Status{UnavailablePods: records(2 * time.Second)},
			want:   settle - 2*time.Second,
		},
		"old":              {why: "it has waited", before: pub.Status{DisruptedPods: records(settle)}},
		"of another clock": {why: "it would never be old", before: pub.Status{DisruptedPods: records(-time.Hour)}},
		"without records": {
			why:    "no record says how long it has waited",
			before: pub.Status{CurrentAvailable: 4},
			after:  pub.Status{CurrentAvailable: 3},
		},
		"another number": {
			why:    "users and evictions read it",
			before: pub.Status{DisruptedPods: records(time.Second), UnavailableAllowed: 1},
			after:  pub.Status{UnavailableAllowed: 2},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := max(0, settles(c.before, c.after, noon())); got != c.want {
				t.Errorf("%s: %s, want %s", c.why, got, c.want)
			}
		})
	}
}

// A pod gets the stamp of the budget that reviews match with it.
func TestStamps(t *testing.T) {
	target := pub.Target{Group: "apps", Kind: "Deployment", Name: "web"}
	pods := []*corev1.Pod{
		newPod("right", stampedWith("web")), newPod("none"), newPod("gone", stampedWith("gone")),
		newPod("later", stampedWith("young")), newPod("first", stampedWith("first"), func(p *corev1.Pod) {
			p.Labels["tier"] = "one"
		}),
		newPod("targeted", controlledBy("rs")),
	}
	s := newSnapshot("web", pods...)
	s.chains = map[types.UID]pub.Chain{"rs": {{Group: "apps", Kind: "ReplicaSet", Name: "rs"}, target}}
	first, young, targeted := newSnapshot("first").object, newSnapshot("young").budget, newSnapshot("zoo").budget
	first.Spec.Selector.MatchLabels["tier"] = "one"
	narrow, _ := pub.Read(first)
	targeted.Selector, targeted.Target = nil, &target
	s.budgets = append(s.budgets, narrow, young, targeted)
	p := newPlan(s, pub.Policy{}, noon())
	var names []string
	for _, pod := range p.stamped {
		names = append(names, pod.Name)
	}
	if got := strings.Join(names, " "); got != "gone later none" {
		t.Errorf("stamps of %s", got)
	}
	if writes := p.records(s); len(writes) != 3 {
		t.Errorf("writes %v", writes)
	}
}

// The notes of a budget are in the plan, with what cannot be read first.
func TestNotes(t *testing.T) {
	s := newSnapshot("web")
	s.object.Spec.MaxUnavailable = ptr.To(intstr.FromString("many"))
	_, s.notes = pub.Read(s.object)
	var codes []string
	for _, n := range newPlan(s, pub.Policy{}, noon()).notes {
		codes = append(codes, n.Code)
	}
	if got := strings.Join(codes, " "); got != pub.NoteUnreadable+" "+pub.NoteNoPods {
		t.Errorf("notes %s", got)
	}
}

// Changes of a pod that change neither a status nor a stamp requeue no budget.
func TestMatters(t *testing.T) {
	pod := newPod("a", stampedWith("web"))
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"created":            {nil, pod, true},
		"created and over":   {nil, newPod("a", terminating), false},
		"deleted by force":   {pod, nil, true},
		"gone":               {newPod("a", terminating), nil, false},
		"the same":           {pod, newPod("a", stampedWith("web")), false},
		"not ready":          {pod, newPod("a", stampedWith("web"), unready), true},
		"terminates":         {pod, newPod("a", stampedWith("web"), terminating), true},
		"replaced":           {pod, newPod("a", stampedWith("web"), func(p *corev1.Pod) { p.UID = "other" }), true},
		"adopted":            {pod, newPod("a", stampedWith("web"), controlledBy("rs")), true},
		"the stamp":          {pod, newPod("a"), true},
		"a label":            {pod, newPod("a", stampedWith("web"), func(p *corev1.Pod) { p.Labels["app"] = "db" }), true},
		"an address it gets": {pod, newPod("a", stampedWith("web"), func(p *corev1.Pod) { p.Status.PodIP = "::1" }), false},
	} {
		if got := (&Reconciler{}).matters(c.before, c.after); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

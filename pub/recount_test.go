package pub_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/pub"
)

// deployments are workloads with these replicas, below zero for one that is gone.
func deployments(replicas ...int32) pub.Total {
	var all []pub.Workload
	for i, n := range replicas {
		all = append(all, pub.Workload{UID: types.UID(fmt.Sprint(i)), Replicas: n, Gone: n < 0})
	}
	return pub.TotalOf(all, false)
}

func recorded(disrupted, updated map[string]metav1.Time) func(*object) {
	return func(b *object) { b.Status.DisruptedPods, b.Status.UnavailablePods = disrupted, updated }
}

func protectTotal(n int32) func(*object) {
	return func(b *object) { b.Spec.ProtectTotalReplicas = ptr.To(n) }
}

// numbers are currentAvailable, desiredAvailable, unavailableAllowed and totalReplicas.
func numbers(s pub.Status) [4]int32 {
	return [4]int32{s.CurrentAvailable, s.DesiredAvailable, s.UnavailableAllowed, s.TotalReplicas}
}

func TestNumbersOfAStatus(t *testing.T) {
	cases := map[string]struct {
		why    string
		budget pub.Budget
		pods   []*corev1.Pod
		total  pub.Total
		want   [4]int32
	}{
		"1: a percentage": {
			why:    "30% of 10 may be unavailable",
			budget: newBudget(maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(10),
			want:   [4]int32{10, 7, 3, 10},
		},
		"3: a number above the total": {
			why:    "minAvailable is not capped",
			budget: newBudget(minAvailable("100")),
			pods:   pods(5),
			total:  deployments(10),
			want:   [4]int32{5, 100, 0, 10},
		},
		"6: scaled to zero, by target": {
			why:    "the pods of such a target are not counted",
			budget: newBudget(targeted("Deployment", "web"), maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(0),
			want:   [4]int32{0, 0, 0, 0},
		},
		"8: a total of the annotation": {
			why:    "without a conversion webhook the annotation has it",
			budget: newBudget(annotated("pub.kruise.io/protect-total-replicas", "15"), maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(10),
			want:   [4]int32{10, 10, 0, 15},
		},
		"8: a total and a workload scaled to zero": {
			why:    "the pods of a scale-down may go",
			budget: newBudget(protectTotal(15), maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(0),
			want:   [4]int32{10, 0, 10, 0},
		},
		"unknown replicas": {
			why:    "-1 is promised, and protects nothing",
			budget: newBudget(maxUnavailable("25%")),
			pods:   pods(4),
			total:  pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false),
			want:   [4]int32{4, 0, 4, -1},
		},
		"both amounts": {
			why:    "maxUnavailable takes precedence",
			budget: newBudget(maxUnavailable("1"), minAvailable("1")),
			pods:   pods(3),
			total:  deployments(3),
			want:   [4]int32{3, 2, 1, 3},
		},
		"an absurd percentage": {
			why:    "the arithmetic does not overflow",
			budget: newBudget(minAvailable("99999999999%")),
			pods:   pods(3),
			total:  deployments(3),
			want:   [4]int32{3, 2147483647, 0, 3},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := pub.Recount(pub.Input{Budget: c.budget, Counts: counts(c.pods), Total: c.total, Now: at(0)})
			if got := numbers(r.Status); got != c.want {
				t.Errorf("%s: current, desired, allowed, total are %v, want %v", c.why, got, c.want)
			}
			if r.Status.ObservedGeneration != 1 {
				t.Errorf("the observed generation is %d", r.Status.ObservedGeneration)
			}
		})
	}
}

func TestNotesOfAStatus(t *testing.T) {
	unknown := pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false)
	cases := map[string]struct {
		why    string
		budget pub.Budget
		pods   []*corev1.Pod
		total  pub.Total
		want   []string
	}{
		"works": {"nothing to explain", newBudget(maxUnavailable("30%")), pods(4), deployments(4), nil},
		"no pods": {
			why:    "a selector may have a typing error",
			budget: newBudget(maxUnavailable("30%")),
			total:  deployments(4),
			want:   []string{pub.NoteNoPods},
		},
		"unknown": {
			why:    "a user has to know that nothing is protected",
			budget: newBudget(maxUnavailable("30%")),
			pods:   pods(4),
			total:  unknown,
			want:   []string{pub.NoteUnknownReplicas},
		},
		"unknown, and irrelevant": {"a number does not need replicas", newBudget(minAvailable("2")), pods(4), unknown, nil},
		"unknown, and in the spec": {
			why:    "the spec has the total",
			budget: newBudget(maxUnavailable("30%"), protectTotal(4)),
			pods:   pods(4),
			total:  unknown,
		},
		"impossible": {
			why:    "drains would wait without a reason",
			budget: newBudget(minAvailable("9")),
			pods:   pods(4),
			total:  deployments(4),
			want:   []string{pub.NoteNoneAllowed},
		},
		"zero": {
			why:    "the same by a percentage",
			budget: newBudget(maxUnavailable("0%")),
			pods:   pods(4),
			total:  deployments(4),
			want:   []string{pub.NoteNoneAllowed},
		},
		"zero of zero": {
			why:    "nothing is desired",
			budget: newBudget(maxUnavailable("0%")),
			total:  deployments(0),
			want:   []string{pub.NoteNoPods},
		},
		"no amount": {
			why:    "the budget protects nothing",
			budget: newBudget(),
			pods:   pods(4),
			total:  deployments(4),
			want:   []string{pub.NoteNoAmount},
		},
		"scaled down": {
			why:    "the total of the spec does not apply",
			budget: newBudget(maxUnavailable("1"), protectTotal(9)),
			pods:   pods(4),
			total:  deployments(0),
			want:   []string{pub.NoteScaledDown},
		},
		"not deleted": {
			why:    "the pod that outlives its deletion",
			budget: newBudget(maxUnavailable("1"), recorded(records(0, 1, -30), nil)),
			pods:   pods(4),
			total:  deployments(4),
			want:   []string{pub.NoteNotDeleted},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := pub.Recount(pub.Input{Budget: c.budget, Counts: counts(c.pods), Total: c.total, Now: at(0)})
			var got []string
			for _, n := range r.Notes {
				got = append(got, n.Code)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// The counts come from a cache that may lack a pod whose disruption was admitted. Its record stays until the cache has
// had time, so that the pod does not count as available once the cache has it.
func TestRecordOfPodThatIsNotCounted(t *testing.T) {
	recount := func(seconds int, stored pub.Status, pods ...*corev1.Pod) pub.Status {
		b := read(newObject("web", maxUnavailable("1")))
		b.Status = stored
		return pub.Recount(pub.Input{Budget: b, Counts: counts(pods), Total: deployments(2), Now: at(seconds)}).Status
	}
	admitted := pub.Status{UnavailablePods: map[string]metav1.Time{"web-1": metav1.NewTime(at(0))}}
	behind := recount(3, admitted, newPod("web-0"))
	got := recount(4, behind, newPod("web-0"), newPod("web-1"))
	if got.CurrentAvailable != 1 || got.UnavailableAllowed != 0 {
		t.Errorf("%d are available, %d more may go", got.CurrentAvailable, got.UnavailableAllowed)
	}
	if got := recount(6, behind, newPod("web-0")); len(got.UnavailablePods) > 0 {
		t.Errorf("the record of a pod that is gone stays: %v", got.UnavailablePods)
	}
}

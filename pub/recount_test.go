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
		"2: rounded up": {
			why:    "10% of 15 is 2",
			budget: newBudget(maxUnavailable("10%")),
			pods:   pods(15),
			total:  deployments(15),
			want:   [4]int32{15, 13, 2, 15},
		},
		"3: a number above the total": {
			why:    "minAvailable is not capped",
			budget: newBudget(minAvailable("100")),
			pods:   pods(5),
			total:  deployments(10),
			want:   [4]int32{5, 100, 0, 10},
		},
		"4: half": {
			why:    "minAvailable as a percentage is of the total",
			budget: newBudget(minAvailable("50%")),
			pods:   pods(5),
			total:  deployments(10),
			want:   [4]int32{5, 5, 0, 10},
		},
		"4: four fifths": {
			why:    "two pods are above 80% of 10",
			budget: newBudget(minAvailable("80%")),
			pods:   pods(10),
			total:  deployments(10),
			want:   [4]int32{10, 8, 2, 10},
		},
		"5: nothing may be unavailable": {
			why:    "0% keeps all",
			budget: newBudget(maxUnavailable("0%")),
			pods:   pods(10),
			total:  deployments(10),
			want:   [4]int32{10, 10, 0, 10},
		},
		"5: everything, as a percentage": {
			why:    "100% keeps none",
			budget: newBudget(maxUnavailable("100%")),
			pods:   pods(10),
			total:  deployments(10),
			want:   [4]int32{10, 0, 10, 10},
		},
		"5: more than everything": {
			why:    "the desired number is not negative",
			budget: newBudget(maxUnavailable("100")),
			pods:   pods(10),
			total:  deployments(10),
			want:   [4]int32{10, 0, 10, 10},
		},
		"6: scaled to zero, by selector": {
			why:    "pods that are left over may go",
			budget: newBudget(maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(0),
			want:   [4]int32{10, 0, 10, 0},
		},
		"6: scaled to zero, by target": {
			why:    "the pods of such a target are not counted",
			budget: newBudget(targeted("Deployment", "web"), maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(0),
			want:   [4]int32{0, 0, 0, 0},
		},
		"7: scaled down": {
			why:    "the total is what the workload wants",
			budget: newBudget(targeted("Deployment", "web"), maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(1),
			want:   [4]int32{10, 0, 10, 1},
		},
		"8: a total of the spec": {
			why:    "protectTotalReplicas replaces the total",
			budget: newBudget(protectTotal(15), maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(10),
			want:   [4]int32{10, 10, 0, 15},
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
		"8: a total and pods without a controller": {
			why:    "bare pods are protected by a total of the spec",
			budget: newBudget(protectTotal(10), maxUnavailable("30%")),
			pods:   pods(10),
			total:  pub.TotalOf(nil, true),
			want:   [4]int32{10, 7, 3, 10},
		},
		"9: a workload that terminates, selector": {
			why:    "its pods may go",
			budget: newBudget(maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(-1),
			want:   [4]int32{10, 0, 10, 0},
		},
		"9: a workload that terminates, target": {
			why:    "its pods are not counted",
			budget: newBudget(targeted("Deployment", "web"), maxUnavailable("30%")),
			pods:   pods(10),
			total:  deployments(-1),
			want:   [4]int32{0, 0, 0, 0},
		},
		"10: surge": {
			why:    "new pods count as old ones do",
			budget: newBudget(maxUnavailable("30%")),
			pods:   pods(13, unready),
			total:  deployments(10),
			want:   [4]int32{12, 7, 5, 10},
		},
		"10: surge, old pods terminating": {
			why:    "terminating pods do not count",
			budget: newBudget(maxUnavailable("30%")),
			pods:   pods(13, unready, terminating, terminating, terminating),
			total:  deployments(10),
			want:   [4]int32{9, 7, 2, 10},
		},
		"23: two workloads": {
			why:    "their replicas are summed",
			budget: newBudget(maxUnavailable("25%")),
			pods:   pods(10),
			total:  deployments(5, 5),
			want:   [4]int32{10, 7, 3, 10},
		},
		"23: one of two scaled to zero": {
			why:    "the sum follows",
			budget: newBudget(maxUnavailable("25%")),
			pods:   pods(5),
			total:  deployments(5, 0),
			want:   [4]int32{5, 3, 2, 5},
		},
		"no pods": {
			why:    "a percentage of nothing is nothing",
			budget: newBudget(maxUnavailable("25%")),
			total:  pub.TotalOf(nil, false),
			want:   [4]int32{},
		},
		"unknown replicas": {
			why:    "-1 is promised, and protects nothing",
			budget: newBudget(maxUnavailable("25%")),
			pods:   pods(4),
			total:  pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false),
			want:   [4]int32{4, 0, 4, -1},
		},
		"unknown replicas, a number to keep": {
			why:    "a number does not need the total",
			budget: newBudget(minAvailable("3")),
			pods:   pods(4),
			total:  pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false),
			want:   [4]int32{4, 3, 1, -1},
		},
		"unknown replicas, a percentage to keep": {
			why:    "the desired number is not negative",
			budget: newBudget(minAvailable("100%")),
			pods:   pods(4),
			total:  pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false),
			want:   [4]int32{4, 0, 4, -1},
		},
		"unknown replicas, a total of the spec": {
			why:    "the spec replaces the unknown",
			budget: newBudget(protectTotal(4), maxUnavailable("25%")),
			pods:   pods(4),
			total:  pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false),
			want:   [4]int32{4, 3, 1, 4},
		},
		"unknown and known replicas": {
			why:    "those that are known count",
			budget: newBudget(maxUnavailable("20%")),
			pods:   pods(9),
			total:  pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}, {UID: "2", Replicas: 5}}, false),
			want:   [4]int32{9, 4, 5, 5},
		},
		"neither amount": {
			why: "nothing is desired", budget: newBudget(), pods: pods(3), total: deployments(3), want: [4]int32{3, 0, 3, 3},
		},
		"an amount that cannot be read": {
			why:    "nothing is desired",
			budget: newBudget(maxUnavailable("many")),
			pods:   pods(3),
			total:  deployments(3),
			want:   [4]int32{3, 0, 3, 3},
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

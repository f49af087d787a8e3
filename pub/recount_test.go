package pub_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
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
		"1: a percentage":                          {"30% of 10 may be unavailable", newBudget(maxUnavailable("30%")), pods(10), deployments(10), [4]int32{10, 7, 3, 10}},
		"2: rounded up":                            {"10% of 15 is 2", newBudget(maxUnavailable("10%")), pods(15), deployments(15), [4]int32{15, 13, 2, 15}},
		"3: a number above the total":              {"minAvailable is not capped", newBudget(minAvailable("100")), pods(5), deployments(10), [4]int32{5, 100, 0, 10}},
		"4: half":                                  {"minAvailable as a percentage is of the total", newBudget(minAvailable("50%")), pods(5), deployments(10), [4]int32{5, 5, 0, 10}},
		"4: four fifths":                           {"two pods are above 80% of 10", newBudget(minAvailable("80%")), pods(10), deployments(10), [4]int32{10, 8, 2, 10}},
		"5: nothing may be unavailable":            {"0% keeps all", newBudget(maxUnavailable("0%")), pods(10), deployments(10), [4]int32{10, 10, 0, 10}},
		"5: everything, as a percentage":           {"100% keeps none", newBudget(maxUnavailable("100%")), pods(10), deployments(10), [4]int32{10, 0, 10, 10}},
		"5: more than everything":                  {"the desired number is not negative", newBudget(maxUnavailable("100")), pods(10), deployments(10), [4]int32{10, 0, 10, 10}},
		"6: scaled to zero, by selector":           {"pods that are left over may go", newBudget(maxUnavailable("30%")), pods(10), deployments(0), [4]int32{10, 0, 10, 0}},
		"6: scaled to zero, by target":             {"the pods of such a target are not counted", newBudget(targeted("Deployment", "web"), maxUnavailable("30%")), pods(10), deployments(0), [4]int32{0, 0, 0, 0}},
		"7: scaled down":                           {"the total is what the workload wants", newBudget(targeted("Deployment", "web"), maxUnavailable("30%")), pods(10), deployments(1), [4]int32{10, 0, 10, 1}},
		"8: a total of the spec":                   {"protectTotalReplicas replaces the total", newBudget(protectTotal(15), maxUnavailable("30%")), pods(10), deployments(10), [4]int32{10, 10, 0, 15}},
		"8: a total of the annotation":             {"without a conversion webhook the annotation has it", newBudget(annotated("pub.kruise.io/protect-total-replicas", "15"), maxUnavailable("30%")), pods(10), deployments(10), [4]int32{10, 10, 0, 15}},
		"8: a total and a workload scaled to zero": {"the pods of a scale-down may go", newBudget(protectTotal(15), maxUnavailable("30%")), pods(10), deployments(0), [4]int32{10, 0, 10, 0}},
		"8: a total and pods without a controller": {"bare pods are protected by a total of the spec", newBudget(protectTotal(10), maxUnavailable("30%")), pods(10), pub.TotalOf(nil, true), [4]int32{10, 7, 3, 10}},
		"9: a workload that terminates, selector":  {"its pods may go", newBudget(maxUnavailable("30%")), pods(10), deployments(-1), [4]int32{10, 0, 10, 0}},
		"9: a workload that terminates, target":    {"its pods are not counted", newBudget(targeted("Deployment", "web"), maxUnavailable("30%")), pods(10), deployments(-1), [4]int32{0, 0, 0, 0}},
		"10: surge":                                {"new pods count as old ones do", newBudget(maxUnavailable("30%")), pods(13, unready), deployments(10), [4]int32{12, 7, 5, 10}},
		"10: surge, old pods terminating":          {"terminating pods do not count", newBudget(maxUnavailable("30%")), pods(13, unready, terminating, terminating, terminating), deployments(10), [4]int32{9, 7, 2, 10}},
		"23: two workloads":                        {"their replicas are summed", newBudget(maxUnavailable("25%")), pods(10), deployments(5, 5), [4]int32{10, 7, 3, 10}},
		"23: one of two scaled to zero":            {"the sum follows", newBudget(maxUnavailable("25%")), pods(5), deployments(5, 0), [4]int32{5, 3, 2, 5}},
		"no pods":                                  {"a percentage of nothing is nothing", newBudget(maxUnavailable("25%")), nil, pub.TotalOf(nil, false), [4]int32{}},
		"unknown replicas":                         {"-1 is promised, and protects nothing", newBudget(maxUnavailable("25%")), pods(4), pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false), [4]int32{4, 0, 4, -1}},
		"unknown replicas, a number to keep":       {"a number does not need the total", newBudget(minAvailable("3")), pods(4), pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false), [4]int32{4, 3, 1, -1}},
		"unknown replicas, a percentage to keep":   {"the desired number is not negative", newBudget(minAvailable("100%")), pods(4), pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false), [4]int32{4, 0, 4, -1}},
		"unknown replicas, a total of the spec":    {"the spec replaces the unknown", newBudget(protectTotal(4), maxUnavailable("25%")), pods(4), pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}}, false), [4]int32{4, 3, 1, 4}},
		"unknown and known replicas":               {"those that are known count", newBudget(maxUnavailable("20%")), pods(9), pub.TotalOf([]pub.Workload{{UID: "1", Unknown: true}, {UID: "2", Replicas: 5}}, false), [4]int32{9, 4, 5, 5}},
		"neither amount":                           {"nothing is desired", newBudget(), pods(3), deployments(3), [4]int32{3, 0, 3, 3}},
		"an amount that cannot be read":            {"nothing is desired", newBudget(maxUnavailable("many")), pods(3), deployments(3), [4]int32{3, 0, 3, 3}},
		"both amounts":                             {"maxUnavailable takes precedence", newBudget(maxUnavailable("1"), minAvailable("1")), pods(3), deployments(3), [4]int32{3, 2, 1, 3}},
		"an absurd percentage":                     {"the arithmetic does not overflow", newBudget(minAvailable("99999999999%")), pods(3), deployments(3), [4]int32{3, 2147483647, 0, 3}},
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

// updatedInPlace is a pod whose update in place was written and whose container started, at these seconds.
func updatedInPlace(written, started int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		annotation(kruise.InPlaceUpdateStateKey, fmt.Sprintf(`{"revision":"r","updateTimestamp":%q,"lastContainerStatuses":{"main":{"imageID":"web@sha256:0"}}}`,
			at(written).Format("2006-01-02T15:04:05Z")))(pod)
		pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(started)}
	}
}

func TestRecords(t *testing.T) {
	none := map[string]metav1.Time(nil)
	cases := map[string]struct {
		why                string
		disrupted, updated map[string]metav1.Time
		pods               []*corev1.Pod
		kept               [2]int
		current            int32
		requeue            int // seconds, of the earliest that is kept
		notDeleted         []string
	}{
		"11: fresh":              {"recorded pods are taken for unavailable", records(0, 10, 0), records(10, 20, 0), pods(100), [2]int{10, 10}, 80, 10, nil},
		"11: others not ready":   {"each pod counts once", records(5, 15, 0), records(15, 25, 0), pods(100, times(5, unready)...), [2]int{10, 10}, 75, 10, nil},
		"11: others terminating": {"the same", records(5, 15, 0), records(15, 25, 0), pods(100, times(5, terminating)...), [2]int{10, 10}, 75, 10, nil},
		"12: old and gone": {
			"updates end after 10 s, and deletions when the pod terminates", records(0, 10, 0), merged(records(10, 15, 0), records(15, 20, -11)),
			pods(100, times(5, terminating)...),
			[2]int{5, 5},
			85, 10, nil,
		},
		"12: old deletions":      {"a pod that outlives its deletion is available again, with an event", records(0, 2, -21), none, pods(4), [2]int{0, 0}, 4, 0, []string{"web-0", "web-1"}},
		"12: the last moment":    {"a record holds until then", records(0, 1, -20), records(1, 2, -10), pods(4), [2]int{1, 1}, 2, 0, nil},
		"gone":                   {"nothing is kept of a pod that does not exist", records(7, 9, 0), records(9, 10, 0), pods(4), [2]int{0, 0}, 4, 0, nil},
		"recorded twice":         {"a pod counts once", records(0, 1, 0), records(0, 1, 0), pods(4), [2]int{1, 1}, 3, 10, nil},
		"updated and available":  {"the record ends before its time", none, records(0, 1, -3), pods(2, updatedInPlace(-3, -1)), [2]int{0, 0}, 2, 0, nil},
		"updated before":         {"an older update says nothing", none, records(0, 1, -3), pods(2, updatedInPlace(-4, -1)), [2]int{0, 1}, 1, 7, nil},
		"no container started":   {"the update may not have taken effect", none, records(0, 1, -3), pods(2, updatedInPlace(-3, -3)), [2]int{0, 1}, 1, 7, nil},
		"deleted, and updated":   {"an update does not end the record of a deletion", records(0, 1, -3), none, pods(2, updatedInPlace(-3, -1)), [2]int{1, 0}, 1, 17, nil},
		"a clock far ahead":      {"no record holds for hours", records(0, 1, 3600), none, pods(2), [2]int{0, 0}, 2, 0, nil},
		"a clock a little ahead": {"a replica may be ahead", records(0, 1, 60), none, pods(2), [2]int{1, 0}, 1, 80, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			budget := newBudget(maxUnavailable("30%"), recorded(c.disrupted, c.updated))
			r := pub.Recount(pub.Input{Budget: budget, Counts: counts(c.pods), Total: deployments(int32(len(c.pods))), Now: at(0)})
			if got := [2]int{len(r.Status.DisruptedPods), len(r.Status.UnavailablePods)}; got != c.kept {
				t.Errorf("%s: %v records are kept, want %v", c.why, got, c.kept)
			}
			if r.Status.CurrentAvailable != c.current {
				t.Errorf("%s: %d are available, want %d", c.why, r.Status.CurrentAvailable, c.current)
			}
			if got := int(r.RequeueAfter.Seconds()); got != c.requeue {
				t.Errorf("%s: looks again after %v, want %d s", c.why, r.RequeueAfter, c.requeue)
			}
			if diff := cmp.Diff(c.notDeleted, r.NotDeleted); diff != "" {
				t.Errorf("%s: not deleted (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func merged(all ...map[string]metav1.Time) map[string]metav1.Time {
	m := map[string]metav1.Time{}
	for _, one := range all {
		maps.Copy(m, one)
	}
	return m
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
		"works":                    {"nothing to explain", newBudget(maxUnavailable("30%")), pods(4), deployments(4), nil},
		"no pods":                  {"a selector may have a typing error", newBudget(maxUnavailable("30%")), nil, deployments(4), []string{pub.NoteNoPods}},
		"unknown":                  {"a user has to know that nothing is protected", newBudget(maxUnavailable("30%")), pods(4), unknown, []string{pub.NoteUnknownReplicas}},
		"unknown, and irrelevant":  {"a number does not need replicas", newBudget(minAvailable("2")), pods(4), unknown, nil},
		"unknown, and in the spec": {"the spec has the total", newBudget(maxUnavailable("30%"), protectTotal(4)), pods(4), unknown, nil},
		"impossible":               {"drains would wait without a reason", newBudget(minAvailable("9")), pods(4), deployments(4), []string{pub.NoteNoneAllowed}},
		"zero":                     {"the same by a percentage", newBudget(maxUnavailable("0%")), pods(4), deployments(4), []string{pub.NoteNoneAllowed}},
		"zero of zero":             {"nothing is desired", newBudget(maxUnavailable("0%")), nil, deployments(0), []string{pub.NoteNoPods}},
		"no amount":                {"the budget protects nothing", newBudget(), pods(4), deployments(4), []string{pub.NoteNoAmount}},
		"scaled down":              {"the total of the spec does not apply", newBudget(maxUnavailable("1"), protectTotal(9)), pods(4), deployments(0), []string{pub.NoteScaledDown}},
		"not deleted":              {"the pod that outlives its deletion", newBudget(maxUnavailable("1"), recorded(records(0, 1, -30), nil)), pods(4), deployments(4), []string{pub.NoteNotDeleted}},
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

package subset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/note"
)

func report(ws *subset.Spread, base subset.Base, ms []subset.Member) subset.Report {
	limits, faults := subset.Limits(ws.Spec.Subsets, base)
	r := subset.Status(subset.Observation{Spread: ws, Limits: limits, Members: ms, Now: noon()})
	r.Notes = append(faults, r.Notes...)
	return r
}

func codes(notes []note.Note) []string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Code)
	}
	return all
}

// TestStatus: the entry of the first subset of the only version.
func TestStatus(t *testing.T) {
	times := func(d ...time.Duration) map[string]metav1.Time {
		all := map[string]metav1.Time{}
		for i, d := range d {
			all[fmt.Sprintf("web-a-%02d", i)] = ago(d)
		}
		return all
	}
	for name, c := range map[string]struct {
		most              any
		base              int32
		unknown           bool
		was               subset.Entry
		pods              []*corev1.Pod
		replicas, missing int32
		codes             []string
		after             time.Duration
		left              int
	}{
		"an active pod takes a place":       {most: 5, pods: pods(1, "a"), replicas: 1, missing: 4},
		"80% of 5":                          {most: "80%", base: 5, pods: pods(1, "a"), replicas: 1, missing: 3},
		"a base of 0 still counts the pods": {most: "80%", pods: pods(2, "a"), replicas: 2, missing: 0},
		"an unknown base takes no pods, with a note": {
			most: "80%", unknown: true, pods: pods(1, "a"), replicas: 1, codes: []string{subset.NoteUnknownReplicas},
		},
		"an unreadable limit takes no pods": {
			most: "many", pods: pods(1, "a"), replicas: 1, codes: []string{subset.NoteUnreadable},
		},
		"a pod that is not seen holds its place": {
			most: 5, was: subset.Entry{CreatingPods: times(2 * time.Second)}, missing: 4, after: 28 * time.Second, left: 1,
		},
		"not for ever": {
			most: 5, was: subset.Entry{CreatingPods: times(time.Minute)}, missing: 5, codes: []string{subset.NoteNotCreated},
		},
		"a pod that is being deleted frees a place": {
			most:     5,
			was:      subset.Entry{DeletingPods: times(time.Second)},
			pods:     pods(5, "a"),
			replicas: 5,
			missing:  1,
			after:    14 * time.Second,
			left:     1,
		},
		"a deletion that does not happen frees none": {
			most:     5,
			was:      subset.Entry{DeletingPods: times(16 * time.Minute)},
			pods:     pods(5, "a"),
			replicas: 5,
			codes:    []string{subset.NoteNotDeleted},
		},
		"a deletion from beyond the limit frees none": {
			most:     3,
			was:      subset.Entry{DeletingPods: times(time.Second)},
			pods:     pods(5, "a"),
			replicas: 5,
			after:    14 * time.Second,
			left:     1,
		},
		"a deleted pod leaves the books": {
			most: 1, was: subset.Entry{Replicas: 1, DeletingPods: times(time.Second)}, missing: 1,
		},
		"the soonest creation is the timer": {
			most:    5,
			was:     subset.Entry{CreatingPods: times(3*time.Second, time.Second)},
			missing: 3,
			after:   27 * time.Second,
			left:    2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.was.Name = "a"
			ws := stored(spreadOf(c.most), c.was)
			r := report(ws, subset.Base{Replicas: c.base, Unknown: c.unknown}, members(c.pods))
			total := r.Status.SubsetStatuses[0]
			if total.Replicas != c.replicas || total.MissingReplicas != c.missing || r.RequeueAfter != c.after {
				t.Errorf("total %+v, again after %s", total, r.RequeueAfter)
			}
			if diff := cmp.Diff(c.codes, codes(r.Notes)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			list, is := r.Status.VersionedSubsetStatuses[one]
			if is != (c.replicas+int32(c.left) > 0) {
				t.Fatalf("the list is kept: %t", is)
			}
			if is && (list[0].Replicas != c.replicas || list[0].MissingReplicas != c.missing ||
				len(list[0].CreatingPods)+len(list[0].DeletingPods) != c.left) {
				t.Errorf("entry %+v", list[0])
			}
			ws.Status = r.Status
			if again := report(ws,
				subset.Base{Replicas: c.base, Unknown: c.unknown}, members(c.pods)); !cmp.Equal(again.Status, r.Status) {
				t.Errorf("the status of the status differs:\n%s", cmp.Diff(r.Status, again.Status))
			}
		})
	}
}

// TestVersions: each version has places of its own, and the totals are of all.
func TestVersions(t *testing.T) {
	ws := spreadOf(3, -1)
	var ms []subset.Member
	for _, version := range []string{"v1", "v2"} {
		for _, m := range members(pods(3, "a"), pods(2, "b")) {
			m.Pod.Name, m.Version = version+"-"+m.Pod.Name, version
			ms = append(ms, m)
		}
	}
	r := report(ws, subset.Base{}, ms)
	for _, version := range []string{"v1", "v2"} {
		if list := r.Status.VersionedSubsetStatuses[version]; len(list) != 2 || list[0].MissingReplicas != 0 ||
			list[1].MissingReplicas != -1 {
			t.Errorf("%s: %+v", version, list)
		}
	}
	if totals := r.Status.SubsetStatuses; totals[0].Replicas != 6 || totals[1].Replicas != 4 ||
		totals[0].MissingReplicas != 0 {
		t.Errorf("%+v", totals)
	}
	count := map[int]int{}
	costs := subset.Costs(subset.Observation{Spread: ws, Limits: limitsOf(ws, 0), Members: ms, Newest: "v2"})
	for name, value := range costs {
		if name[:2] == "v1" {
			value += 1000
		}
		count[value]++
	}
	if diff := cmp.Diff(map[int]int{200: 3, 100: 2, 1100: 3, 1200: 2}, count); diff != "" {
		t.Errorf("costs (-want +got):\n%s", diff)
	}
}

// TestReschedule: a subset whose pods find no node takes none, for a time.
func TestReschedule(t *testing.T) {
	condition := func(since time.Duration) []metav1.Condition {
		return []metav1.Condition{{
			Type:               string(appsv1beta1.SubsetSchedulable),
			Status:             metav1.ConditionFalse,
			Reason:             appsv1beta1.SubsetReasonPodUnschedulable,
			LastTransitionTime: ago(since),
		}}
	}
	for name, c := range map[string]struct {
		was    []metav1.Condition
		pod    *corev1.Pod
		fixed  bool
		status metav1.ConditionStatus
		stuck  int
		codes  []string
		after  time.Duration
		since  time.Duration
	}{
		"a pod that may wait longer is waited for": {
			pod: unscheduled(podIn("x", "a"), 2*time.Second), status: metav1.ConditionTrue, after: 3 * time.Second,
		},
		"a pod that waits too long is deleted": {
			pod: unscheduled(podIn("x", "a"), 6*time.Second), status: metav1.ConditionFalse, stuck: 1,
		},
		"the time of the first pod is kept": {
			pod:    unscheduled(podIn("x", "a"), 6*time.Second),
			was:    condition(time.Minute),
			status: metav1.ConditionFalse,
			stuck:  1,
			since:  time.Minute,
		},
		"pods of the last subset are left": {
			pod: unscheduled(podIn("x", "b"), time.Hour), status: metav1.ConditionTrue,
		},
		"pods outside are left": {
			pod: unscheduled(podIn("x", ""), time.Hour), status: metav1.ConditionTrue,
		},
		"a subset is left alone for five minutes": {
			was: condition(4 * time.Minute), status: metav1.ConditionFalse, after: time.Minute, since: 4 * time.Minute,
		},
		"then it takes pods again": {
			was: condition(10 * time.Minute), status: metav1.ConditionTrue, codes: []string{subset.NoteRecovered},
		},
		"the strategy Fixed leaves all": {
			pod: unscheduled(podIn("x", "a"), time.Hour), was: condition(time.Minute), fixed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ws := adaptive(spreadOf(2, -1), 5)
			if c.fixed {
				ws.Spec.ScheduleStrategy.Type = appsv1beta1.FixedWorkloadSpreadScheduleStrategyType
			}
			ws.Status.SubsetStatuses = []subset.Entry{{Name: "a", Conditions: c.was}}
			var all []*corev1.Pod
			if c.pod != nil {
				all = append(all, c.pod)
			}
			r := report(ws, subset.Base{}, members(all))
			var status metav1.ConditionStatus
			for _, condition := range r.Status.SubsetStatuses[0].Conditions {
				status = condition.Status
				if c.since != 0 && !condition.LastTransitionTime.Time.Equal(noon().Add(-c.since)) {
					t.Errorf("transition %s", condition.LastTransitionTime)
				}
			}
			if status != c.status || len(r.Stuck) != c.stuck || r.RequeueAfter != c.after ||
				!cmp.Equal(codes(r.Notes), c.codes) {
				t.Errorf("status %q, %d stuck, after %s, notes %v", status, len(r.Stuck), r.RequeueAfter, r.Notes)
			}
			for _, list := range r.Status.VersionedSubsetStatuses { // every version has the conditions of the totals
				if !cmp.Equal(list[0].Conditions, r.Status.SubsetStatuses[0].Conditions) {
					t.Errorf("version: %+v", list[0])
				}
			}
		})
	}
}

// TestRescheduleIsBounded: one pass deletes a bounded number of pods, and the next one follows soon.
func TestRescheduleIsBounded(t *testing.T) {
	ws := adaptive(spreadOf(-1, -1), 5)
	all := pods(3*subset.MaxReschedules, "a")
	for _, pod := range all {
		unscheduled(pod, time.Minute)
	}
	if r := report(ws, subset.Base{}, members(all)); len(r.Stuck) != subset.MaxReschedules ||
		r.RequeueAfter != time.Second {
		t.Errorf("%d stuck, again after %s", len(r.Stuck), r.RequeueAfter)
	}
}

// TestMissing: the formula against one that counts pods on fingers.
func TestMissing(t *testing.T) {
	for limit := int32(-2); limit < 6; limit++ {
		for active := range 7 {
			for deleting := range active + 1 {
				for creating := range 4 {
					want := int32(0)
					for n := active - deleting + creating; int32(n) < limit; n++ {
						want++
					}
					if limit == subset.Unlimited {
						want = -1
					}
					if got := subset.Missing(limit, active, deleting, creating); got != want {
						t.Fatalf("limit %d, %d active, %d deleting, %d creating: %d, want %d",
							limit, active, deleting, creating, got, want)
					}
				}
			}
		}
	}
}

// TestStatusOrder: neither the order of pods nor that of maps matters, and the input is not changed.
func TestStatusOrder(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		ws := adaptive(spreadOf(r.IntN(4), fmt.Sprintf("%d%%", r.IntN(100)), -1), 5)
		if r.IntN(2) == 0 {
			ws.Spec.ScheduleStrategy.Adaptive.RescheduleCriticalSeconds = ptr.To[int32](0)
		}
		var ms []subset.Member
		for i := range r.IntN(12) {
			pod := podIn(fmt.Sprintf("web-%02d", i), []string{"a", "b", "c", ""}[r.IntN(4)])
			switch r.IntN(4) {
			case 0:
				unscheduled(pod, time.Duration(r.IntN(10))*time.Second)
			case 1:
				pod.DeletionTimestamp = ptr.To(ago(0))
			}
			m := members([]*corev1.Pod{pod})[0]
			m.Version = []string{"v1", "v2"}[r.IntN(2)]
			ms = append(ms, m)
		}
		limits := limitsOf(ws, 7)
		in := func(ms []subset.Member) (subset.Report, map[string]int) {
			seen := subset.Observation{Spread: ws, Limits: limits, Members: ms, Newest: "v2", Now: noon()}
			return subset.Status(seen), subset.Costs(seen)
		}
		want, costs := in(ms)
		shuffled := slices.Clone(ms)
		r.Shuffle(len(ms), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		kept := slices.Clone(shuffled)
		got, gotCosts := in(shuffled)
		if diff := cmp.Diff(want, got) + cmp.Diff(costs, gotCosts) + cmp.Diff(kept, shuffled); diff != "" {
			t.Fatalf("seed %d: the order matters:\n%s", seed, diff)
		}
	}
}

package subset_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// TestReturn: a pod comes back under the name of its predecessor. Its creation is recorded, also where the deletion of
// the other one is.
func TestReturn(t *testing.T) {
	gone := map[string]metav1.Time{"web-1": ago(time.Second)}
	for name, c := range map[string]struct {
		entry subset.Entry
		given string
		want  string
		// missing of the first subset afterwards.
		missing int32
	}{
		"its predecessor is being deleted": {entry: subset.Entry{Replicas: 2, DeletingPods: gone}, want: "a"},
		"its predecessor found no node": {
			entry: unschedulable(subset.Entry{Replicas: 1, DeletingPods: gone}), want: "b", missing: 2,
		},
		"it is sent again": {
			entry: unschedulable(subset.Entry{Replicas: 1, DeletingPods: gone, CreatingPods: gone}), want: "a", missing: 1,
		},
		"it has a subset of an earlier call": {entry: subset.Entry{Replicas: 1}, given: "b", want: "b", missing: 1},
		"it has one that is full":            {entry: subset.Entry{Replicas: 5}, given: "a", want: "a"},
		"it has one that takes no pods any more": {
			entry: unschedulable(subset.Entry{}), given: "a", want: "a", missing: 1,
		},
		"it has another one than the record": {
			entry: subset.Entry{CreatingPods: gone}, given: "b", want: "b", missing: 1,
		},
		"it has one that the spec does not have": {entry: subset.Entry{}, given: "z"},
		"its record is in the subset that it has now": {
			entry: subset.Entry{CreatingPods: gone}, given: "a", want: "a", missing: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.entry.Name = "a"
			ws := stored(spreadOf(2, -1), c.entry)
			ws.Status.SubsetStatuses = []subset.Entry{{Name: "a", Conditions: c.entry.Conditions}}
			b := subset.Open(ws, limitsOf(ws, 0))
			got := ""
			if s := b.Admit(subset.Arrival{Version: one, ID: "web-1", Given: c.given}, noon()).Subset; s != nil {
				got = s.Name
			}
			if got != c.want {
				t.Errorf("subset %q, want %q", got, c.want)
			}
			if got == "" {
				return
			}
			ms := members(pods(int(c.entry.Replicas), "a"))
			ws.Status = b.Status()
			ws.Status.VersionedSubsetStatuses[one][0].DeletingPods = nil
			if len(c.entry.DeletingPods) > 0 {
				ws.Status.VersionedSubsetStatuses[one][0].DeletingPods = map[string]metav1.Time{ms[0].Pod.Name: ago(time.Second)}
			}
			if missing := report(ws, subset.Base{}, ms).Status.SubsetStatuses[0].MissingReplicas; missing != c.missing {
				t.Errorf("%d missing, want %d", missing, c.missing)
			}
		})
	}
}

func unschedulable(e subset.Entry) subset.Entry {
	e.Conditions = []metav1.Condition{{
		Type: "Schedulable", Status: metav1.ConditionFalse, LastTransitionTime: ago(time.Second),
	}}
	return e
}

// TestReturnedName: records by name tell a pod from its predecessor of the same name.
func TestReturnedName(t *testing.T) {
	at := func(d time.Duration) map[string]metav1.Time { return map[string]metav1.Time{"web": ago(d)} }
	created := func(d time.Duration, change func(*corev1.Pod)) []*corev1.Pod {
		pod := podIn("web", "a")
		pod.CreationTimestamp = ago(d)
		change(pod)
		return []*corev1.Pod{pod}
	}
	as := func(*corev1.Pod) {}
	for name, c := range map[string]struct {
		was                         subset.Entry
		pods                        []*corev1.Pod
		creating, deleting, missing int
	}{
		"the successor is no pod that is being deleted": {
			was: subset.Entry{DeletingPods: at(5 * time.Second)}, pods: created(2*time.Second, as), missing: 1,
		},
		"the predecessor is": {
			was: subset.Entry{DeletingPods: at(5 * time.Second)}, pods: created(time.Hour, as), deleting: 1, missing: 2,
		},
		"the predecessor ends the record of the name": {
			was:  subset.Entry{DeletingPods: at(5 * time.Second), CreatingPods: at(time.Second)},
			pods: created(time.Hour, as), deleting: 1, missing: 2,
		},
		"the successor is": {
			was:     subset.Entry{DeletingPods: at(5 * time.Second), CreatingPods: at(3 * time.Second)},
			pods:    created(2*time.Second, as),
			missing: 1,
		},
		"clocks that differ hold no record of another name": {
			was: subset.Entry{CreatingPods: at(time.Second)}, pods: created(9*time.Second, as), missing: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.was.Name = "a"
			r := report(stored(spreadOf(2), c.was), subset.Base{}, members(c.pods))
			got := []int{0, 0, int(r.Status.SubsetStatuses[0].MissingReplicas)}
			if list := r.Status.VersionedSubsetStatuses[one]; len(list) > 0 {
				got[0], got[1] = len(list[0].CreatingPods), len(list[0].DeletingPods)
			}
			if diff := cmp.Diff([]int{c.creating, c.deleting, c.missing}, got); diff != "" || len(r.Notes) > 0 {
				t.Errorf("creating, deleting, missing (-want +got), notes %v:\n%s", codes(r.Notes), diff)
			}
		})
	}
}

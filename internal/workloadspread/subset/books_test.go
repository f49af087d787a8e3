package subset_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// TestAdmit: which subset an arrival gets, and what the books have then.
func TestAdmit(t *testing.T) {
	creating := map[string]metav1.Time{"web-1": ago(time.Second)}
	unschedulable := subset.Entry{
		Name:       "a",
		Conditions: []metav1.Condition{{Type: string(appsv1beta1.SubsetSchedulable), Status: metav1.ConditionFalse}},
	}
	for name, c := range map[string]struct {
		spread *subset.Spread
		base   int32
		want   string
		// missing of each subset afterwards; nil where the books do not change.
		missing []int32
	}{
		"a pod beyond the sum is admitted as it is": {
			spread: stored(spreadOf(2, 1), subset.Entry{Name: "a", Replicas: 2}, subset.Entry{Name: "b", Replicas: 1}),
		},
		"a pod in the books gets its subset again": {
			spread: stored(spreadOf(2, 2), subset.Entry{Name: "a", Replicas: 2}, subset.Entry{
				Name: "b", CreatingPods: creating,
			}),
			want: "b",
		},
		"percentages are of the base, rounded up": {
			spread: spreadOf("30%", "70%"), base: 5, want: "a", missing: []int32{1, 4},
		},
		"one subset without a limit needs no books": {spread: spreadOf(-1), want: "a"},
		"a subset that is not schedulable passes the pod on": {
			spread: func() *subset.Spread {
				ws := spreadOf(3, 3)
				ws.Status.SubsetStatuses = []subset.Entry{unschedulable}
				return ws
			}(),
			want: "b", missing: []int32{3, 2},
		},
		"a changed limit counts before the controller has seen it": {
			spread: stored(spreadOf(3, -1), subset.Entry{Name: "a", Replicas: 2, MissingReplicas: 0}, subset.Entry{
				Name: "b", MissingReplicas: -1,
			}),
			want:    "a",
			missing: []int32{0, -1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.spread.DeepCopy()
			b := subset.Open(c.spread, limitsOf(c.spread, c.base))
			place := b.Admit(subset.Arrival{Version: one, ID: "web-1"}, noon())
			got := ""
			if place.Subset != nil {
				got = place.Subset.Name
			}
			if got != c.want {
				t.Errorf("subset %q, want %q", got, c.want)
			}
			var missing []int32
			if b.Changed() {
				for _, e := range b.Status().VersionedSubsetStatuses[one] {
					missing = append(missing, e.MissingReplicas)
					if _, is := e.CreatingPods["web-1"]; is != (e.Name == c.want) {
						t.Errorf("records of %s: %v", e.Name, e.CreatingPods)
					}
				}
			}
			if diff := cmp.Diff(c.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.spread); diff != "" {
				t.Errorf("the input changed:\n%s", diff)
			}
		})
	}
}

// TestDepart: what the deletion of a pod opens.
func TestDepart(t *testing.T) {
	for name, c := range map[string]struct {
		spread  *subset.Spread
		subset  string
		missing int32
		changed bool
	}{
		"a full subset gets a place": {
			spread: stored(spreadOf(5), subset.Entry{Name: "a", Replicas: 5}), subset: "a", missing: 1, changed: true,
		},
		"a subset beyond its limit gets none": {
			spread: stored(spreadOf(3), subset.Entry{Name: "a", Replicas: 5}), subset: "a", changed: true,
		},
		"a subset that the spec lacks gets none": {
			spread: stored(spreadOf(3), subset.Entry{Name: "a", Replicas: 3}), subset: "z",
		},
		"a subset without a limit needs none": {
			spread: stored(spreadOf(-1), subset.Entry{Name: "a", Replicas: 3}), subset: "a",
		},
		"a version without a list has nothing to record": {spread: spreadOf(3), subset: "a"},
		"a deletion that is recorded is not recorded again": {
			spread: stored(spreadOf(3), subset.Entry{
				Name: "a", Replicas: 3, MissingReplicas: 1, DeletingPods: map[string]metav1.Time{"web-1": ago(0)},
			}),
			subset: "a",
		},
		"a pod that was never observed opens nothing": {
			spread: stored(spreadOf(3), subset.Entry{Name: "a", CreatingPods: map[string]metav1.Time{"id-1": ago(0)}}),
			subset: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := subset.Open(c.spread, limitsOf(c.spread, 0))
			b.Depart(subset.Departure{Version: one, Subset: c.subset, ID: "id-1", Pod: "web-1"}, noon())
			if b.Changed() != c.changed {
				t.Fatalf("changed is %t", b.Changed())
			}
			if e := b.Status().VersionedSubsetStatuses[one]; c.changed &&
				(e[0].MissingReplicas != c.missing || len(e[0].DeletingPods) != 1) {
				t.Errorf("%+v", e[0])
			}
		})
	}
}

// TestByOrdinal: ranges of a StatefulSet do not move when a subset is not schedulable.
func TestByOrdinal(t *testing.T) {
	ws := spreadOf(2, 2, -1)
	at := func() string {
		text := ""
		for ordinal := range int32(6) {
			if s := subset.ByOrdinal(ws, ordinal); s != nil {
				text += s.Name
			} else {
				text += "-"
			}
		}
		return text
	}
	if got := at(); got != "aabbcc" {
		t.Error(got)
	}
	ws.Status.SubsetStatuses = []subset.Entry{{
		Name: "a", Conditions: []metav1.Condition{{Type: "Schedulable", Status: metav1.ConditionFalse}},
	}}
	if got := at(); got != "ccbbcc" {
		t.Error(got)
	}
	ws.Spec.Subsets = ws.Spec.Subsets[:2]
	if got := at(); got != "--bb--" {
		t.Error(got)
	}
}

package workloadspread_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// leave has a allocator record the deletion of a pod of subset a.
func (c *cluster) leave(d *workloadspread.Allocator, name string) {
	c.Helper()
	gone := cloned(name)
	gone.Annotations = map[string]string{"apps.kruise.io/matched-workloadspread": `{"name":"s","subset":"a"}`}
	if err := d.Depart(c.Context(), gone); err != nil {
		c.Fatal(err)
	}
}

// TestTwice: two webhook entries send one pod, and a place becomes free between the calls. The pod stays in the subset
// of the first call.
func TestTwice(t *testing.T) {
	for name, owner := range map[string]*corev1.Pod{"without a name": cloned(""), "with a name": cloned("web-z")} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			ws := spread("s", "CloneSet", 1, -1)
			ws.Status.VersionedSubsetStatuses = map[string][]subset.Entry{one: {
				{Name: "a", Replicas: 1}, {Name: "b", MissingReplicas: -1},
			}}
			c.put(ws)
			d, x := c.replica(workloadspread.Options{})
			c.show(x, "s")
			first := c.admit(d, owner, "1")
			c.leave(d, "web-x")
			if second := c.admit(d, first, "2"); subsetOf(first) != "b" || second != nil {
				t.Errorf("the first call gives %q, the second one %q with tolerations of %v",
					subsetOf(first), subsetOf(second), second.Spec.Tolerations)
			}
			if got := subsetOf(c.admit(d, cloned("web-y"), "3")); got != "a" {
				t.Errorf("the next pod gets %q", got)
			}
		})
	}
}

// TestForged: an annotation of a pod template gives no pod a subset, and with all that the subset adds, no place that
// is not counted.
func TestForged(t *testing.T) {
	tolerates := func(key string) []corev1.Toleration {
		return []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
	}
	for name, c := range map[string]struct {
		annotation  string
		tolerations []corev1.Toleration
		// bare subsets add nothing to a pod.
		bare bool
		want string
		// creating pods that subset a has afterwards.
		creating int
	}{
		"an annotation alone": {annotation: `{"name":"s","subset":"b"}`, want: "a", creating: 1},
		"an annotation of a subset that adds nothing": {
			annotation: `{"name":"s","subset":"a","uid":"x"}`, bare: true, want: "b", creating: 1,
		},
		"an annotation that names another": {
			annotation: `{"name":"other","subset":"b"}`, tolerations: tolerates("b"), want: "a", creating: 1,
		},
		"a subset that the spec lacks": {
			annotation: `{"name":"s","subset":"z"}`, tolerations: tolerates("z"), want: "a", creating: 1,
		},
		"what the other subset adds": {
			annotation: `{"name":"s","subset":"b","uid":"x"}`, tolerations: tolerates("b"), want: "b",
		},
		"what a subset with a limit adds": {
			annotation: `{"name":"s","subset":"a","uid":"x"}`, tolerations: tolerates("a"), want: "a", creating: 1,
		},
		"the UID of another pod of this one": {annotation: `{"name":"s","subset":"a","uid":"0"}`, want: "b", creating: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t)
			ws := spread("s", "CloneSet", 1, -1)
			for i := range ws.Spec.Subsets {
				if c.bare {
					ws.Spec.Subsets[i].Tolerations = nil
				}
			}
			s.put(ws)
			d, x := s.replica(workloadspread.Options{})
			s.show(x, "s")
			if c.want == "b" && c.creating > 0 { // the place is taken
				s.admit(d, cloned(""), "0")
			}
			p := cloned("")
			p.Annotations = map[string]string{"apps.kruise.io/matched-workloadspread": c.annotation}
			p.Spec.Tolerations = c.tolerations
			next := s.admit(d, p, "1")
			if next == nil {
				next = p
			}
			if subsetOf(next) != c.want {
				t.Errorf("subset %q", subsetOf(next))
			}
			creating := 0
			if list := s.stored("s").Status.VersionedSubsetStatuses[one]; len(list) > 0 {
				creating = len(list[0].CreatingPods)
			}
			if creating != c.creating {
				t.Errorf("%d pods are counted", creating)
			}
			if d, x := s.replica(workloadspread.Options{}); c.creating == 1 { // another replica gives the place to no second pod
				s.show(x, "s")
				if got := subsetOf(s.admit(d, cloned("web-y"), "2")); got != "b" {
					t.Errorf("the next pod gets %q", got)
				}
			}
		})
	}
}

// TestReturn: a rescheduled pod that comes back with its name, as with the claims of a CloneSet or in a further kind,
// goes on to the next subset.
func TestReturn(t *testing.T) {
	c := newCluster(t)
	ws := spread("s", "CloneSet", 2, -1)
	bad := []metav1.Condition{{
		Type: "Schedulable", Status: "False", Reason: "PodUnschedulable", LastTransitionTime: metav1.Now(),
	}}
	ws.Status.SubsetStatuses = []subset.Entry{
		{Name: "a", Replicas: 1, MissingReplicas: 1, Conditions: bad}, {Name: "b", MissingReplicas: -1},
	}
	ws.Status.VersionedSubsetStatuses = map[string][]subset.Entry{one: ws.Status.SubsetStatuses}
	c.put(ws)
	d, x := c.replica(workloadspread.Options{})
	c.show(x, "s")
	c.leave(d, "web-x")
	if other, same := subsetOf(c.admit(d, cloned("web-y"), "1")),
		subsetOf(c.admit(d, cloned("web-x"), "2")); other != "b" || same != "b" {
		t.Errorf("another pod gets %q, the one with its name %q", other, same)
	}
}

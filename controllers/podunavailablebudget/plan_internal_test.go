package podunavailablebudget

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/pub"
)

func TestSettles(t *testing.T) {
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(noon().Add(-d)) }
	records := func(all ...time.Duration) map[string]metav1.Time {
		of := map[string]metav1.Time{}
		for i, d := range all {
			of[string(rune('a'+i))] = ago(d)
		}
		return of
	}
	cases := map[string]struct {
		why           string
		before, after pub.Status
		want          time.Duration
	}{
		"evicted just now": {
			why:    "more may be evicted",
			before: pub.Status{DisruptedPods: records(0), CurrentAvailable: 3},
			after:  pub.Status{CurrentAvailable: 3},
			want:   settle,
		},
		"the oldest decides": {
			why:    "evictions that go on must not hold the write back for ever",
			before: pub.Status{DisruptedPods: records(time.Second, 4*time.Second)},
			want:   time.Second,
		},
		"one stays": {
			why:    "its record is not dropped",
			before: pub.Status{DisruptedPods: records(time.Second, 4*time.Second)},
			after:  pub.Status{DisruptedPods: map[string]metav1.Time{"b": ago(4 * time.Second)}},
			want:   settle - time.Second,
		},
		"updated": {
			why:    "records of updates are alike",
			before: pub.Status{UnavailablePods: records(2 * time.Second)},
			want:   settle - 2*time.Second,
		},
		"old": {why: "it has waited", before: pub.Status{DisruptedPods: records(settle)}},
		"of another clock": {
			why:    "a record from the future would never be old",
			before: pub.Status{DisruptedPods: records(-time.Hour)},
		},
		"counted again": {
			why:    "as many may be evicted",
			before: pub.Status{DisruptedPods: records(time.Second, 3*time.Second), CurrentAvailable: 4},
			after:  pub.Status{DisruptedPods: records(time.Second, 3*time.Second), CurrentAvailable: 2},
			want:   settle - 3*time.Second,
		},
		"counted without records": {
			why:    "no record says how long it has waited",
			before: pub.Status{CurrentAvailable: 4},
			after:  pub.Status{CurrentAvailable: 3},
		},
		"another number": {
			why:    "users and evictions read it",
			before: pub.Status{DisruptedPods: records(0), UnavailableAllowed: 1},
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

// A status that says nothing new to evictions, but of a pod that terminates, is written when its record is old.
func TestRecordSettles(t *testing.T) {
	for age, changed := range map[time.Duration]bool{time.Second: false, settle: true} {
		tr := &tracker{}
		o := newObject("web", func(o *podUnavailableBudget) {
			o.Status.DisruptedPods = map[string]metav1.Time{"a": metav1.NewTime(noon().Add(-age))}
		})
		s, _ := following(t, tr, o, newPod("a", stampedWith("web"), terminating), newPod("b", stampedWith("web")))
		tr.with(s.key(), func(b *tracked) {
			records := s.budget.Status.DisruptedPods
			s.budget.Status = plan(s, b, tr.namespaces["shop"], noon()).status // all else is stored
			s.budget.Status.DisruptedPods = records
			s.budget.Status.CurrentAvailable++ // as before the eviction
			p := plan(s, b, tr.namespaces["shop"], noon())
			if p.changed != changed || !changed && p.after != settle-age {
				t.Errorf("a record of %s: changed is %t, and the budget is reconciled after %s", age, p.changed, p.after)
			}
		})
	}
}

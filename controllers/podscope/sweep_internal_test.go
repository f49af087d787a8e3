package podscope

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

func provisional(t *testing.T, generation int64) entry {
	t.Helper()
	s := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid", Generation: generation}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	return *scope.Provisional(scope.Input{Namespace: "n", Client: served("ca").ClientConfig}, s)
}

// A provisional entry ends seconds after it was seen first, and stays while the planned entries are not written. An
// entry of a later state of its set, or one that comes back, is a new one.
func TestSweep(t *testing.T) {
	one, two := provisional(t, 1), provisional(t, 2)
	var s sightings
	for i, m := range []struct {
		at        time.Duration
		entry     *entry
		unplanned bool
		ended     bool
		next      time.Duration
	}{
		{at: 0, entry: &one, next: lasts},
		{at: 4 * time.Second, entry: &one, next: lasts - 4*time.Second},
		{at: 6 * time.Second, entry: &one, unplanned: true},
		{at: 7 * time.Second, entry: &one, ended: true},
		{at: 7 * time.Second, entry: &two, next: lasts},
		{at: 8 * time.Second},
		{at: 9 * time.Second, entry: &two, next: lasts},
		{at: 14 * time.Second, entry: &two, ended: true},
	} {
		have := named("provisional", entry{Name: "theirs.example.com"})
		if m.entry != nil {
			have.Webhooks = append(have.Webhooks, *m.entry)
		}
		var ended []string
		var next time.Duration
		s, ended, next = s.sweep(have, !m.unplanned, time.Unix(1000, 0).Add(m.at))
		if (len(ended) > 0) != m.ended || next != m.next {
			t.Errorf("%d: at %s: ended %q, next in %s", i, m.at, ended, next)
		}
	}
}

// Entries that ended are removed by one write, and those of others stay.
func TestSweepWrites(t *testing.T) {
	g := newGround(t).want("a", "").settle()
	for i := range int64(20) {
		g.provisional = named(ProvisionalConfiguration, entry{Name: "theirs.example.com"}, provisional(t, i),
			entry{Name: "more.example.com"})
		g.provisional.ResourceVersion = fmt.Sprint("p", i)
		before := g.writes
		g.next()
		g.now = g.now.Add(lasts)
		g.next()
		if g.writes != before+1 || len(g.provisional.Webhooks) != 2 {
			t.Fatalf("%d writes leave %d entries", g.writes-before, len(g.provisional.Webhooks))
		}
	}
}

package entries_test

import (
	"fmt"
	"testing"
	"time"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
)

// moment is what is observed at a time, and what becomes of the one provisional entry.
type moment struct {
	at    time.Duration
	sets  []*appsv1beta1.SidecarSet
	entry *appsv1beta1.SidecarSet // the entry is for this state; nil for no entry
	// unplanned is observed where the planned entries are not written yet.
	unplanned bool
	off       bool
	over      bool
	next      time.Duration
}

const (
	settle = time.Second
	lost   = 5 * time.Second
)

func TestProvisional(t *testing.T) {
	one, two := newSet("a", 1), newSet("a", 2)
	reborn := newSet("a", 1)
	reborn.UID = "another"
	sets := func(all ...*appsv1beta1.SidecarSet) []*appsv1beta1.SidecarSet { return all }
	cases := map[string]struct {
		why     string
		moments []moment
	}{
		"a set that comes": {"its entry goes a second after the others have it", []moment{
			{at: 0, entry: one, next: lost},
			{at: 3 * time.Second, entry: one, sets: sets(one), unplanned: true},
			{at: 4 * time.Second, entry: one, sets: sets(one), next: settle},
			{at: 4500 * time.Millisecond, entry: one, sets: sets(one), next: 500 * time.Millisecond},
			{at: 5 * time.Second, entry: one, sets: sets(one), over: true},
		}},
		"a set that does not come": {"its entry goes after seconds", []moment{
			{at: 0, entry: one, next: lost},
			{at: 4 * time.Second, entry: one, next: time.Second},
			{at: 5 * time.Second, entry: one, over: true},
		}},
		"a set that comes and goes": {"it was covered, and will not come again", []moment{
			{at: 0, entry: one, sets: sets(one), next: settle},
			{at: 500 * time.Millisecond, entry: one, next: 500 * time.Millisecond},
			{at: time.Second, entry: one, over: true},
		}},
		"a change that comes later": {"an earlier state of the set does not count", []moment{
			{at: 0, entry: two, sets: sets(one), next: lost},
			{at: 2 * time.Second, entry: two, sets: sets(one), next: lost - 2*time.Second},
			{at: 3 * time.Second, entry: two, sets: sets(two), next: settle},
			{at: 4 * time.Second, entry: two, sets: sets(two), over: true},
		}},
		"a set that goes and comes": {"the entry is of another set now", []moment{
			{at: 0, entry: one, sets: sets(one), next: settle},
			{at: time.Second, entry: reborn, next: lost},
			{at: 2 * time.Second, entry: reborn, sets: sets(reborn), next: settle},
			{at: 3 * time.Second, entry: reborn, sets: sets(reborn), over: true},
		}},
		"an entry that comes back": {"it is a new one", []moment{
			{at: 0, entry: one, sets: sets(one), next: settle},
			{at: time.Second, sets: sets(one)},
			{at: 2 * time.Second, entry: one, sets: sets(one), next: settle},
		}},
		"off": {"without the webhook there is none", []moment{{at: 0, entry: one, off: true, over: true}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGround(t).want(wanted("mpod.kb.io", "a"))
			g.Pods = named("pods")
			g.settle()
			begin, planned := g.Now, g.Pods
			for i, m := range c.moments {
				g.Provisional = named("provisional", wanted("theirs.example.com", "true"))
				g.Provisional.ResourceVersion = fmt.Sprint(i)
				if m.entry != nil {
					g.Provisional.Webhooks = append(g.Provisional.Webhooks, provisionalOf(t, m.entry))
				}
				left := len(g.Provisional.Webhooks)
				if g.Pods = planned; m.unplanned {
					g.Pods = named("pods")
				}
				g.Now, g.Sets, g.policy.Off = begin.Add(m.at), untyped(t, m.sets...), m.off
				if m.off {
					g.want()
					g.Pods = nil
				}
				if m.unplanned {
					g.unwritten()
					continue
				}
				if !m.over && g.pause() != max(m.next, time.Millisecond) {
					t.Errorf("%s: at %s the next one is in %s, want %s", c.why, m.at, g.pause(), m.next)
				}
				if over := g.next() != nil; over != m.over {
					t.Fatalf("%s: at %s the entry is removed: %t", c.why, m.at, over)
				}
				if m.over {
					left--
				}
				if len(g.Provisional.Webhooks) != left {
					t.Errorf("%s: at %s there are %d entries, want %d", c.why, m.at, len(g.Provisional.Webhooks), left)
				}
			}
		})
	}
}

// unwritten makes a pass whose write, that of the planned entries, fails.
func (g *ground) unwritten() {
	g.Helper()
	pass, err := entries.Next(g.Observation, g.state, g.policy)
	if err != nil {
		g.Fatal(err)
	}
	if pass.Write == nil || pass.Write.Object.GetName() != name {
		g.Errorf("the planned entries are not written first: %+v", pass.Write)
	}
	g.state = pass.State
}

// Several entries that end at once go with one write.
func TestSeveral(t *testing.T) {
	g := newGround(t)
	g.Provisional = named("provisional")
	for i := range 8 {
		g.Provisional.Webhooks = append(g.Provisional.Webhooks, provisionalOf(t, newSet(fmt.Sprintf("s%d", i), 1)))
	}
	g.next()
	g.Now = g.Now.Add(lost)
	if g.settle(); g.writes != 1 || len(g.Provisional.Webhooks) > 0 {
		t.Errorf("%d writes, %d entries are left", g.writes, len(g.Provisional.Webhooks))
	}
}

// An entry that another writer puts back is removed after longer and longer pauses.
func TestSweepsSlowDown(t *testing.T) {
	g := newGround(t)
	put := func() {
		g.version++
		g.Provisional = named("provisional", provisionalOf(t, newSet("a", 1)))
		g.Provisional.ResourceVersion = fmt.Sprint("p", g.version)
	}
	put()
	for end := g.Now.Add(time.Hour); g.Now.Before(end); {
		if g.next() != nil {
			put()
		}
		g.Now = g.Now.Add(g.pause())
	}
	if g.writes < 10 || g.writes > 80 {
		t.Errorf("%d writes in an hour", g.writes)
	}
}

package podscope

import (
	"fmt"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/internal/scope"
)

// Resets of the configuration by another writer, and what they cost.
func TestResets(t *testing.T) {
	for name, c := range map[string]struct {
		why string
		// pause between two resets; zero for a reset right after each write.
		pause time.Duration
		// resets are how many there are at most.
		resets int
		// longest time without entries, and the range of all writes.
		longest     time.Duration
		fewest, max int
	}{
		"once":                {"it is repaired at once", time.Hour, 1, 0, 2, 2},
		"right away":          {"a reset soon after a write is repaired within a second", 0, 2, time.Second, 3, 3},
		"every three minutes": {"this is no quarrel", 3 * time.Minute, 20, 0, 21, 21},
		"for ever":            {"pauses grow to a minute", 0, 1000, time.Minute, 55, 75},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t).want("a", "")
			begin, resets := g.now, 0
			var longest time.Duration
			for resets < c.resets && g.now.Sub(begin) < time.Hour || g.pods.Webhooks == nil {
				if g.pods.Webhooks != nil {
					g.now = g.now.Add(c.pause + time.Millisecond)
					resets++
					g.edit(func(p *configuration) { p.Webhooks, p.Annotations = nil, nil })
				}
				reset := g.now
				for g.next() == nil {
					g.now = g.now.Add(g.pause())
				}
				longest = max(longest, g.now.Sub(reset))
			}
			if longest > c.longest || g.writes < c.fewest || g.writes > c.max {
				t.Errorf("%s: %d writes for %d resets, up to %s without entries", c.why, g.writes, resets, longest)
			}
		})
	}
}

// A new wish does not wait for a quarrel, whose pauses continue.
func TestQuarrel(t *testing.T) {
	g := newGround(t).want("a", "")
	reset := func() { g.edit(func(p *configuration) { p.Webhooks = nil }) }
	for range 8 {
		for g.next() == nil {
			g.now = g.now.Add(g.pause())
		}
		reset()
	}
	if g.next(); g.pause() < 20*time.Second {
		t.Fatalf("after 8 resets the pause is %s", g.pause())
	}
	g.now = g.now.Add(time.Second)
	if g.want("b", "").next() == nil {
		t.Fatalf("a change waits %s", g.pause())
	}
	reset()
	if g.next(); g.pause() < 10*time.Second {
		t.Errorf("the quarrel goes on, and the pause is %s", g.pause())
	}
}

// A cache that does not show the write yet is no reason to write again, and no quarrel.
func TestCacheBehind(t *testing.T) {
	g := newGround(t).want("a", "")
	before := g.pods
	g.next()
	after := g.pods
	g.pods, g.now = before, g.now.Add(100*time.Millisecond)
	if g.next() != nil || g.pause() > time.Second {
		t.Errorf("it is written again, or looked at after %s", g.pause())
	}
	g.pods = after
	if g.settle(); g.writes != 1 || len(g.announced) > 0 {
		t.Errorf("%d writes, announced %v", g.writes, g.announced)
	}
}

// What is wanted may change all the time: each change is written within half a second, and no minute has more than 121
// writes.
func TestWrites(t *testing.T) {
	g := newGround(t).want("a", "").settle()
	g.now = g.now.Add(time.Minute)
	before, since := g.writes, g.now
	for i := range 1200 { // a minute
		g.want(fmt.Sprint(i), "")
		if g.next() != nil {
			since = g.now
		}
		if g.now.Sub(since) > interval {
			t.Fatalf("nothing is written for %s", g.now.Sub(since))
		}
		g.now = g.now.Add(50 * time.Millisecond)
	}
	if n := g.writes - before; n > 121 {
		t.Errorf("%d writes in a minute", n)
	}
}

// A namespace comes at once, stays while objects come and go, and leaves minutes after the last one. Objects of a
// namespace that has others change nothing.
func TestKeep(t *testing.T) {
	g := newGround(t)
	contribute := func(closed, open []string) { g.contributions = []scope.Contribution{{Closed: closed, Open: open}} }
	wrote := func(why string, want bool) {
		t.Helper()
		if got := g.next() != nil; got != want {
			t.Fatalf("%s: written %t", why, got)
		}
	}
	contribute([]string{"a"}, []string{"a", "b"})
	wrote("the first objects", true)
	for i := range 400 {
		var open []string
		if i%2 == 0 {
			open = []string{"a", "b"}
		}
		g.now = g.now.Add(50 * time.Millisecond)
		contribute([]string{"a"}, open)
		wrote("objects that come and go", false)
	}
	contribute(nil, []string{"c"})
	g.now = g.now.Add(time.Second)
	wrote("another namespace", true)
	contribute(nil, nil)
	began := g.now
	for g.next(); len(g.pods.Webhooks) > 0; g.next() {
		g.now = g.now.Add(g.pause())
	}
	if after := g.now.Sub(began); after < keepRemoved || after > keepRemoved+time.Second || g.writes > 4 {
		t.Errorf("all leave after %s, with %d writes in all", after, g.writes)
	}
	if len(g.announced) > 0 {
		t.Errorf("announced %v", g.announced)
	}
}

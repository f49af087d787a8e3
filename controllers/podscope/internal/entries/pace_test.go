package entries_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
)

// Resets of the configuration by another writer, and what they cost.
func TestResets(t *testing.T) {
	cases := map[string]struct {
		why string
		// every is the time between two resets; zero for a reset right after each write.
		every time.Duration
		// resets are how many there are at most.
		resets int
		// most is the longest time without entries, and writes the range of all writes.
		most           time.Duration
		fewest, writes int
	}{
		"once":                {"it is repaired at once", time.Hour, 1, 0, 2, 2},
		"right away":          {"a reset soon after a write is repaired within a second", 0, 2, time.Second, 3, 3},
		"every three minutes": {"this is no quarrel", 3 * time.Minute, 20, 0, 21, 21},
		"every forty seconds": {"this is no quarrel either", 40 * time.Second, 50, 0, 51, 51},
		"for ever":            {"pauses grow to a minute", 0, 1000, time.Minute, 55, 75},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGround(t).want(wanted("mpod.kb.io", "a"))
			g.Pods = named("pods")
			begin, resets := g.Now, 0
			var longest time.Duration
			for resets < c.resets && g.Now.Sub(begin) < time.Hour || g.Pods.Webhooks == nil {
				if g.Pods.Webhooks != nil {
					g.Now = g.Now.Add(c.every + time.Millisecond)
					resets++
					g.edit(func(p *configuration) { p.Webhooks, p.Annotations = nil, nil })
				}
				reset := g.Now
				for g.next() == nil {
					g.Now = g.Now.Add(g.pause())
				}
				longest = max(longest, g.Now.Sub(reset))
			}
			if longest > c.most || g.writes < c.fewest || g.writes > c.writes {
				t.Errorf("%s: %d writes for %d resets, the longest time without entries is %s", c.why, g.writes, resets, longest)
			}
		})
	}
}

// pause is how long the last pass wants to wait.
func (g *ground) pause() time.Duration {
	g.Helper()
	pass, err := entries.Next(g.Observation, g.state, g.policy)
	if err != nil {
		g.Fatal(err)
	}
	return max(pass.RequeueAfter, time.Millisecond)
}

// A new wish does not wait for a quarrel, whose pauses continue.
func TestQuarrel(t *testing.T) {
	g := newGround(t).want(wanted("mpod.kb.io", "a"))
	g.Pods = named(name)
	reset := func() { g.edit(func(p *configuration) { p.Webhooks, p.Annotations = nil, nil }) }
	for range 8 {
		for g.next() == nil {
			g.Now = g.Now.Add(g.pause())
		}
		reset()
	}
	if g.next(); g.pause() < 20*time.Second {
		t.Fatalf("after 8 resets the pause is %s", g.pause())
	}
	g.Now = g.Now.Add(time.Second)
	if g.want(wanted("mpod.kb.io", "b")).next() == nil {
		t.Fatalf("a change waits %s", g.pause())
	}
	reset()
	if g.next(); g.pause() < 10*time.Second {
		t.Errorf("the quarrel goes on, and the pause is %s", g.pause())
	}
}

// A cache that does not show the write yet is no reason to write again, and no quarrel.
func TestCacheBehind(t *testing.T) {
	g := newGround(t).want(wanted("mpod.kb.io", "a"))
	before := named(name)
	g.Pods = before
	g.next()
	after := g.Pods
	g.Pods, g.Now = before, g.Now.Add(100*time.Millisecond)
	if g.next() != nil || g.pause() > time.Second {
		t.Errorf("it is written again, or looked at after %s", g.pause())
	}
	g.Pods = after
	if g.settle(); g.writes != 1 || len(g.announced) > 0 {
		t.Errorf("%d writes, announced %v", g.writes, g.announced)
	}
}

// What is wanted may change all the time: each change is written within half a second, and no minute has more than 140
// writes.
func TestFlips(t *testing.T) {
	g := newGround(t)
	g.Pods = named(name)
	g.want(wanted("mpod.kb.io", "a")).settle()
	g.Now = g.Now.Add(time.Minute)
	before := g.writes
	var since time.Time
	for i := range 1200 { // a minute
		g.want(wanted("mpod.kb.io", fmt.Sprint(i)))
		if g.next() != nil {
			since = g.Now
		}
		if i > 0 && g.Now.Sub(since) > 500*time.Millisecond {
			t.Fatalf("nothing is written for %s", g.Now.Sub(since))
		}
		g.Now = g.Now.Add(50 * time.Millisecond)
	}
	if n := g.writes - before; n > 140 {
		t.Errorf("%d writes in a minute", n)
	}
}

package entries_test

import (
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
	"github.com/kruisekit/kruisekit/internal/scope"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods are looked for once, a moment after the entries are written again, from when they were missing.
func TestWindow(t *testing.T) {
	reset := func(g *ground) { g.edit(func(p *configuration) { p.Webhooks, p.Annotations = nil, nil }) }
	cases := map[string]struct {
		why  string
		edit func(*ground)
		// since is the begin of the window before the edit; negative for no window.
		since time.Duration
	}{
		"a reset":    {"pods went without the entries", reset, 2 * time.Second},
		"a deletion": {"pods went without the entries", func(g *ground) { g.Pods = nil }, 2 * time.Second},
		"an edit": {"pods may have been excluded", func(g *ground) {
			g.edit(func(p *configuration) { p.Webhooks[0].MatchConditions[0].Expression = "false" })
		}, 2 * time.Second},
		"a new set": {"a provisional entry covers its pods", func(g *ground) { g.want(wanted("mpod.kb.io", "b")) }, -1},
		"a restart": {"the entries are right", func(g *ground) { g.state = entries.State{} }, -1},
		"a reset before the start": {"the time is not known better than by the age of the object", func(g *ground) {
			reset(g)
			g.Pods.CreationTimestamp, g.state = metav1.NewTime(g.Now.Add(-time.Hour)), entries.State{}
		}, time.Hour},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGround(t).want(wanted("mpod.kb.io", "a"))
			g.Pods = named("pods")
			g.settle()
			for range 3 { // the window of the installation itself
				g.Now = g.Now.Add(time.Minute)
				g.next()
			}
			c.edit(g)
			at := g.Now
			g.settle()
			found := []scope.Window{}
			for range 8 {
				pass, err := entries.Next(g.Observation, g.state, g.policy)
				if err != nil {
					t.Fatal(err)
				}
				if g.state = pass.State; !pass.Window.Until.IsZero() {
					found = append(found, pass.Window)
				}
				g.Now = g.Now.Add(max(pass.RequeueAfter, time.Second))
			}
			if c.since < 0 {
				if len(found) > 0 {
					t.Errorf("%s: %v", c.why, found)
				}
				return
			}
			if len(found) != 1 || found[0].Since != at.Add(-c.since) || found[0].Until != at {
				t.Errorf("%s: %v, want one from %s to %s", c.why, found, at.Add(-c.since), at)
			}
		})
	}
}

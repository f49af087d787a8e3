package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeath plays stories over and over, and lets the controller die at each of its writes: once before the server
// has it, once after. The story ends as if nothing had happened. To die before a write is to die after the one that
// went before it in the same turn, so this is tried only with the first write of a turn.
func TestDeath(t *testing.T) {
	all, births := stories(), map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			s := all[name]
			if s.lives {
				t.Skip("another story goes through the same writes")
			}
			whole := s.play(t, seedOfStories)
			from := 1
			if births[whole.birth.told] { // as in another story
				from += whole.birth.writes
			}
			births[whole.birth.told] = true
			for at := from; at <= whole.writes; at++ {
				s.playDead(t, whole, at, true)
				if slices.Contains(whole.client.firsts, at) {
					s.playDead(t, whole, at, false)
				}
			}
		})
	}
}

// playDead plays a story with a controller that dies at a write, and compares its end with how it ends else.
func (s *story) playDead(t *testing.T, whole *world, at int, after bool) {
	t.Helper()
	w := newWorld(t, seedOfStories, s.settings, s.spec)
	w.dies.at, w.dies.after = at, after
	s.run(w)
	hurried := slices.ContainsFunc(s.then, func(d deed) bool { return d.after > 0 })
	if diff := cmp.Diff(whole.outcome(hurried), w.outcome(hurried)); diff != "" {
		w.fail("another end after death at write %d, after it: %v (-whole +got):\n%s", at, after, diff)
	}
}

// outcome is all that counts in the end. Where the user acts in the middle of something, it depends on how far that has
// come which pods are made, and how often containers start again.
func (w *world) outcome(hurried bool) string {
	var lines []string
	for _, o := range w.server.pods {
		line := fmt.Sprintf("%s %s", versionOf(&o.pod.ObjectMeta), stateOf(&o.pod.ObjectMeta))
		for _, c := range o.pod.Status.ContainerStatuses {
			line += " " + c.Image
			if !hurried {
				line += fmt.Sprintf(", restarted %d times", c.RestartCount)
			}
		}
		for _, gate := range o.pod.Spec.ReadinessGates {
			line += fmt.Sprintf(" %s=%s", gate.ConditionType, conditionOf(o.pod, gate.ConditionType))
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	if !hurried {
		lines = append(lines, fmt.Sprintf("%d pods were made", w.rules.created))
	}
	return strings.Join(lines, "\n")
}

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeath plays every story over and over, and lets the controller die at each of its writes: once before the server
// has it, once after. The story ends as if nothing had happened.
func TestDeath(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			whole := s.play(t, seedOfStories)
			for at := 1; at <= whole.writes; at++ {
				for _, after := range []bool{false, true} {
					w := newWorld(t, seedOfStories, s.settings, s.spec)
					w.dies.at, w.dies.after = at, after
					s.run(w)
					if diff := cmp.Diff(whole.outcome(), w.outcome()); diff != "" {
						t.Fatalf("%swrite %d, dead after it: %v: another end (-whole +got):\n%s", w.tale.text(), at, after, diff)
					}
				}
			}
		})
	}
}

// outcome is all that counts in the end.
func (w *world) outcome() string {
	var lines []string
	for _, o := range w.server.pods {
		pod := o.pod
		line := fmt.Sprintf("%s %s %s", versionOf(&pod.ObjectMeta), stateOf(&pod.ObjectMeta), pod.Status.Phase)
		for _, c := range pod.Status.ContainerStatuses {
			line += fmt.Sprintf(" %s restarted %d times", c.Image, c.RestartCount)
		}
		for _, c := range pod.Status.Conditions {
			line += fmt.Sprintf(" %s=%s", c.Type, c.Status)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return fmt.Sprintf("%d pods were made\n%s\n", w.rules.created, strings.Join(lines, "\n"))
}

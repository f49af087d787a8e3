package uniteddeployment_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/storytest"
)

// scene is what happens in a story after a time.
type scene struct {
	what string
	do   func(m *model)
	// last is how long the story goes on after it.
	last time.Duration
}

// A story goes turn by turn: the workloads, and the requests of the reconciler. A workload is a subset, the replicas
// that it is to have, its partition, and its pods. A pod is the release of its image; a question mark is not ready, and
// an R reserved.
func TestStories(t *testing.T) {
	const minute = time.Minute
	user := func(changes ...change) func(*model) {
		return func(m *model) { m.change(m.story, changes...) }
	}
	stories := map[string]struct {
		why      string
		replicas int32
		zones    string
		room     map[string]int
		set      []change
		scenes   []scene
	}{
		"a zone fills and overflows": {
			why:      "zone a has room for 2 pods: the others move to zone b, and a ready pod never moves",
			replicas: 2,
			zones:    "a,b",
			room:     map[string]int{"a": 2},
			set:      []change{adaptive(30, 300, false)},
			scenes: []scene{
				{"the user asks for 4", user(scaled(4)), 2 * minute},
				{"the user asks for 6", user(scaled(6)), minute},
				{"zone a has room again", func(m *model) { delete(m.room, "a") }, 10 * minute},
				{"the user asks for 7", user(scaled(7)), minute},
			},
		},
		"a zone dies and comes back": {
			why:      "zone a loses its nodes: its pods keep their place, and substitutes run in zone b until they are back",
			replicas: 4,
			zones:    "a<2,b",
			room:     map[string]int{},
			set:      []change{adaptive(30, 60, true)},
			scenes: []scene{
				{"zone a dies", func(m *model) { m.room["a"] = 0; m.kill("a") }, 2 * minute},
				{"the user asks for 6", user(scaled(6)), minute},
				{"zone a is back", func(m *model) { m.room["a"] = 2 }, 3 * minute},
			},
		},
		"a rollout with partitions": {
			why:      "zone a first, then half of zone b, then all",
			replicas: 6,
			zones:    "a,b",
			set:      []change{of("StatefulSet")},
			scenes: []scene{
				{"the user releases to zone a", user(image("web:2"), partitions(map[string]int32{"b": 3})), minute},
				{"the user goes on", user(partitions(map[string]int32{"b": 1})), minute},
				{"the user ends it", user(partitions(nil)), minute},
			},
		},
		"elastic burst and return": {
			why:      "4 own replicas, and rented ones beyond",
			replicas: 3,
			zones:    "own<4,rented",
			set:      []change{of("Deployment")},
			scenes: []scene{
				{"the user asks for 9", user(scaled(9)), minute},
				{"the user asks for 5", user(scaled(5)), minute},
				{"the user asks for 2", user(scaled(2)), minute},
			},
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			m.room = story.room
			m.story = m.create("web", story.replicas, story.zones, story.set...)
			m.pass(time.Minute)
			told := &strings.Builder{}
			fmt.Fprintf(told, "# %s\n\n        %s\n", story.why, m.picture(m.story))
			started := m.Clock
			for _, scene := range story.scenes {
				fmt.Fprintf(told, "\n%6s  %s\n", m.Clock.Sub(started).Round(time.Second), scene.what)
				scene.do(m)
				m.tell(told, started, m.Clock.Add(scene.last))
			}
			storytest.Compare(t, name, told.String())
		})
	}
}

// kill removes the nodes of a zone, with their pods.
func (m *model) kill(zone string) {
	m.Helper()
	for _, pod := range m.pods(func(p *corev1.Pod) bool { return p.Spec.NodeName == zone }) {
		if err := m.Server.Delete(m.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			m.Fatal(err)
		}
	}
}

// tell plays until a time.
func (m *model) tell(told *strings.Builder, started, end time.Time) {
	m.Helper()
	for range 200 {
		m.Server.Requests()
		before := m.Server.Version()
		m.Reconcile()
		if requests := m.Server.Requests(); len(requests) > 0 {
			fmt.Fprintf(told, "%6s  %s\n", m.Clock.Sub(started).Round(time.Second), m.picture(m.story))
			for _, line := range brief(requests) {
				fmt.Fprintf(told, "        %s\n", line)
			}
		}
		m.world()
		if m.Server.Version() != before {
			m.Advance(time.Second)
			continue
		}
		if m.Due.IsZero() || m.Due.After(end) {
			break
		}
		m.Clock = m.Due
	}
	m.Clock = end
	m.Reconcile()
	fmt.Fprintf(told, "%6s  %s\n", m.Clock.Sub(started).Round(time.Second), m.picture(m.story))
}

// brief returns requests with the names of subsets in the place of generated names, in the order of their text.
func brief(requests []string) []string {
	names := regexp.MustCompile(`web-([a-z]+)-[a-z0-9]{5}(-[a-z0-9]+)?`)
	revisions := regexp.MustCompile(`controllerrevisions/web-\S+`)
	counts := map[string]int{}
	for _, r := range requests {
		counts[names.ReplaceAllString(revisions.ReplaceAllString(r, "controllerrevisions/web"), "$1")]++
	}
	var lines []string
	for text, n := range counts {
		if n > 1 {
			text += fmt.Sprintf(" (%d times)", n)
		}
		lines = append(lines, text)
	}
	slices.Sort(lines)
	return lines
}

package simulation

import (
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/test/storytest"
)

// story is one rollout.
type story struct {
	// shows is the comment at its top.
	shows    string
	settings settings
	spec     spec
	// then are the deeds of the user, each once the world has settled, or after some ticks.
	then []deed
	// stands says that the world does not get to where the user wants it, and that a note of this code tells why.
	stands string
	// lives says that another story goes through the same kinds of writes: TestDeath leaves this one out.
	lives bool
	// writes is how many each update in place takes; 0 where that is not the point.
	writes int
}

// deed is something that the user does.
type deed struct {
	says string
	// after is how many ticks to wait; 0 to wait until the world has settled.
	after int
	do    func(*world)
}

func (s *story) play(t *testing.T, seed uint64) *world {
	t.Helper()
	w := newWorld(t, seed, s.settings, s.spec)
	s.run(w)
	return w
}

func (s *story) run(w *world) {
	w.Helper()
	w.tale.say("user", "makes a shop of %d at %s", s.spec.Replicas, versionOf(&s.spec.Template.ObjectMeta))
	for _, d := range s.then {
		if d.after == 0 {
			w.settled()
		}
		for range d.after {
			w.step()
		}
		if w.birth.told == "" {
			w.birth.told, w.birth.writes = w.tale.text(), w.writes
		}
		w.tale.say("user", "%s", d.says)
		d.do(w)
	}
	if s.stands == "" {
		w.settled()
		return
	}
	w.settle(w.tick + 3000)
	if w.missing() == "" {
		w.fail("the world gets to its end, although it should not")
	}
	for _, n := range w.notesOf() {
		if n.Code == s.stands {
			return
		}
	}
	w.fail("the world stands still, and no note %s says why", s.stands)
}

// seedOfStories makes each run of them the same.
const seedOfStories = 1

func TestStories(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			w := s.play(t, seedOfStories)
			for _, n := range w.rules.counted {
				if s.writes > 0 && n != s.writes {
					t.Errorf("%d writes for an update in place, want %d", n, s.writes)
				}
			}
			if s.writes > 0 && len(w.rules.counted) == 0 {
				t.Error("nothing was updated in place")
			}
			storytest.Compare(t, name, "# "+strings.ReplaceAll(strings.TrimSpace(s.shows), "\n", "\n# ")+"\n\n"+w.tale.text())
		})
	}
}

// A rollback during the grace period restarts nothing, whatever the limits: the containers have not changed yet.
func TestRollbackInGrace(t *testing.T) {
	for name, limits := range map[string]func(*spec){
		"all at once": func(s *spec) { s.MaxUnavailable = "6" },
		"two by two":  func(s *spec) { s.MaxUnavailable = "2" },
		"in slots":    func(s *spec) { s.MaxUnavailable, s.Slots = "6", true },
		"partition":   func(s *spec) { s.Partition = "3" },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				rollback := story{
					spec: of(6, "6").with(limits).with(func(s *spec) { s.GraceSeconds = 10 }),
					then: []deed{wants("v2"), wants("v1").in(5)},
				}
				if name == "partition" {
					rollback.then[1] = partition("6").in(5)
				}
				w := rollback.play(t, seed)
				for _, stored := range w.server.pods {
					for _, c := range stored.pod.Status.ContainerStatuses {
						if c.RestartCount > 0 {
							t.Errorf("seed %d: container %s of %s restarted %d times:\n%s", seed, c.Name, stored.pod.Name, c.RestartCount, w.tale.text())
						}
					}
					if got := stored.pod.Spec.Containers[0].Image; got != "shop:v1" {
						t.Errorf("seed %d: %s has %s", seed, stored.pod.Name, got)
					}
				}
			}
		})
	}
}

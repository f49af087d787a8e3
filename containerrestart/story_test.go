package containerrestart_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

var update = flag.Bool("update", false, "write the stories again")

// TestStories tells what happens to some requests, second by second, and compares it with how it was told before.
func TestStories(t *testing.T) {
	stories := map[string]struct {
		shows string
		ways  map[string]way
		begin func(*world)
		then  map[int]func(*world) // by second
		until int                  // by default for 20 seconds
	}{
		"two": {
			shows: "Two containers, the second stopped as soon as the first has stopped.",
			ways:  map[string]way{"app": {slow: 3}},
			begin: func(w *world) {
				w.create("again", func(r *request) {
					r.Spec.Strategy = &strategy{MinStartedSeconds: 2}
					r.Spec.TTLSecondsAfterFinished = ptr.To[int32](3)
				})
			},
		},
		"ordered": {
			shows: "One after the other, out of traffic; the pod is put back at the end.",
			ways:  map[string]way{"app": {slow: 5}},
			begin: func(w *world) {
				w.create("again", func(r *request) {
					r.Spec.Strategy = &strategy{OrderedRecreate: true, UnreadyGracePeriodSeconds: ptr.To[int64](2)}
				})
			},
		},
		"deadline": {
			shows: "The deadline passes during a hook: the container is stopped all the same, the next one is not.",
			ways:  map[string]way{"app": {hook: 8}},
			begin: func(w *world) {
				w.create("again", func(r *request) { r.Spec.ActiveDeadlineSeconds = ptr.To[int64](3) })
			},
		},
		"queue": {
			shows: "Two requests for one pod; the second runs when the first is over.",
			ways:  map[string]way{"log": {hook: 3}},
			begin: func(w *world) { w.create("first") },
			then: map[int]func(*world){2: func(w *world) {
				w.create("second", func(r *request) { r.Spec.Containers = r.Spec.Containers[:1] })
			}},
		},
		"force": {
			shows: "By force; the daemon dies when the container has stopped, before it says so. " +
				"The next one leaves the new container alone.",
			ways: map[string]way{"app": {hook: 4}},
			begin: func(w *world) {
				w.create("again", func(r *request) {
					r.Spec.Strategy = &strategy{ForceRecreate: true}
					r.Spec.Containers = r.Spec.Containers[:1]
				})
			},
			then: map[int]func(*world){5: (*world).die},
		},
		"crash": {
			shows: "The new container ends again and again. The request says so, and goes on with the next.",
			ways:  map[string]way{"app": {crashing: true}},
			begin: func(w *world) {
				w.create("again", func(r *request) { r.Spec.Strategy = &strategy{OrderedRecreate: true, FailurePolicy: ignore} })
			},
		},
		"stuck": {
			shows: "A container cannot be stopped: the others stay untouched.",
			ways:  map[string]way{"app": {unstoppable: true, hook: 2}},
			begin: func(w *world) { w.create("again") },
		},
		"alone": {
			until: 65,
			shows: "No daemon runs: the request ends by itself.",
			begin: func(w *world) {
				w.noDaemon = true
				w.create("again")
			},
		},
		"cancelled": {
			shows: "The request is deleted during a hook: the container is not stopped.",
			ways:  map[string]way{"app": {hook: 8}},
			begin: func(w *world) { w.create("again") },
			then:  map[int]func(*world){4: func(w *world) { w.delete("again") }},
		},
	}
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			w.ways = s.ways
			s.begin(w)
			for second := 1; second <= max(s.until, 20); second++ {
				w.tick()
				if then := s.then[second]; then != nil {
					then(w)
				}
				w.manage()
				w.serve(true)
			}
			if w.problem != "" {
				t.Fatalf("%s\n%s", w.problem, w.text())
			}
			compare(t, name, "# "+s.shows+"\n\n"+w.text())
		})
	}
}

// compare with the story as it was told before.
func compare(t *testing.T, name, told string) {
	t.Helper()
	lines := strings.Split(told, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	told = strings.Join(lines, "\n")
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(told), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run this test with -update", err)
	}
	if diff := cmp.Diff(string(want), told); diff != "" {
		t.Errorf("the story is another one now; if it is a better one, run this test with -update (-want +got):\n%s", diff)
	}
}

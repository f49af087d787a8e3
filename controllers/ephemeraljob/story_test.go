package ephemeraljob_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/test/storytest"
)

// story is a job from its creation to rest. The turn decides what happens meanwhile.
type story struct {
	why  string
	pods string
	job  []change
	ends map[string]string
	// events are what users and API servers do before a turn.
	events map[int]event
}

type event struct {
	told string
	do   func(*model, *job)
}

func stories() map[string]story {
	add := func(name string) event {
		return event{name + " is created", func(m *model, _ *job) { m.addPod(name) }}
	}
	restart := event{"the manager restarts", func(m *model, _ *job) { m.restart(m.Server) }}
	refuse := func(name string) event {
		return event{"the API server refuses containers for " + name, func(m *model, _ *job) { m.fault(name, refusal()) }}
	}
	accept := func(name string) event {
		return event{"the API server accepts containers for " + name, func(m *model, _ *job) { m.fault(name, nil) }}
	}
	jobs := func(all ...change) []change { return all }
	return map[string]story{
		"plain": {
			why:  "two pods at a time; the job is deleted a minute after its end",
			pods: "a b c",
			job:  jobs(parallelism(2), ttl(60)),
		},
		"by one": {
			why: "one pod at a time by default, and four of five pods", pods: "a b c d e", job: jobs(replicas(4), ttl(0)),
		},
		"failed": {
			why:  "a failed pod stops no other one",
			pods: "a b c",
			job:  jobs(parallelism(1)),
			ends: map[string]string{"b": "failed"},
		},
		"more pods": {
			why:    "a job for three pods waits for the last one",
			pods:   "a b",
			job:    jobs(replicas(3), parallelism(3)),
			events: map[int]event{8: add("c")},
		},
		"held": {
			why:    "parallelism 0 holds a job",
			pods:   "a",
			job:    jobs(parallelism(0)),
			events: map[int]event{3: {"the parallelism is 1", func(m *model, j *job) { m.change(j, parallelism(1)) }}},
		},
		"no pod": {why: "a job waits for pods", events: map[int]event{2: add("a")}},
		"deadline": {
			why:    "the deadline holds though the manager restarts, and the container goes on",
			pods:   "a b",
			job:    jobs(deadline(20)),
			ends:   map[string]string{"a": "runs"},
			events: map[int]event{3: restart, 5: restart},
		},
		"refused": {
			why:    "one pod refuses the containers, and the others get them",
			pods:   "a b c",
			events: map[int]event{0: refuse("a"), 12: accept("a")},
		},
		"pulled": {
			why:    "a container that cannot be pulled holds its slot until its pod is deleted",
			pods:   "a b",
			ends:   map[string]string{"a": "pulls"},
			events: map[int]event{4: {"a is deleted", func(m *model, _ *job) { m.deletePod("a") }}},
		},
		"replaced": {
			why:    "the next pod takes the place of a target that is deleted",
			pods:   "a b c",
			job:    jobs(replicas(2), parallelism(2)),
			ends:   map[string]string{"a": "runs"},
			events: map[int]event{4: {"a is deleted", func(m *model, _ *job) { m.deletePod("a") }}},
		},
		"paused": {
			why:    "a paused job adds nothing",
			pods:   "a b",
			job:    jobs(paused(true), deadline(3600)),
			events: map[int]event{2: {"the job continues", func(m *model, j *job) { m.change(j, paused(false)) }}},
		},
		"taken over": {why: "a finalizer of the reference goes at once", pods: "a", job: jobs(finalizer)},
		"deleted": {
			why:  "a job with a finalizer is deleted, and the pod keeps its container",
			pods: "a",
			job:  jobs(finalizer),
			ends: map[string]string{"a": "runs"},
			events: map[int]event{
				2: {"the reference adds the finalizer again, and the user deletes the job", func(m *model, j *job) {
					m.change(j, finalizer)
					if err := m.Server.Delete(m.Context(), j); err != nil {
						m.Fatal(err)
					}
				}},
			},
		},
	}
}

// A story is a job, turn by turn: the requests of the reconciler, and the pods after them.
func TestStories(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, s.pods)
			if s.ends != nil {
				m.ends = s.ends
			}
			j := m.create(s.job...)
			m.Server.Requests()
			storytest.Compare(t, name, s.tell(m, j))
		})
	}
}

func (s story) tell(m *model, j *job) string {
	m.Helper()
	events := map[int]storytest.Event{}
	for i, e := range s.events {
		events[i] = storytest.Event{Line: e.told, Do: func() { e.do(m, j) }}
	}
	return storytest.Job{
		Why: s.why, Model: m.Model, Object: j, Events: events, Run: m.run, Picture: m.picture, Readable: sorted,
		Counters: func() string { return counters(j) },
	}.Text(m)
}

// sorted sorts the writes of pods, which go out in parallel.
func sorted(requests []string) []string {
	pods := slices.IndexFunc(requests, func(r string) bool { return strings.Contains(r, "/status ") })
	if pods < 0 {
		pods = len(requests)
	}
	slices.Sort(requests[:pods])
	return requests
}

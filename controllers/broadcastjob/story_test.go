package broadcastjob_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/test/storytest"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// story is a job from its creation to rest. The turn decides what happens meanwhile.
type story struct {
	why     string
	nodes   string
	options broadcastjob.Options
	job     []func(*v1beta1.BroadcastJob)
	ends    map[string]string
	// events are what users and nodes do before a turn.
	events map[int]event
}

type event struct {
	told string
	do   func(*model, *v1beta1.BroadcastJob)
}

func stories() map[string]story {
	deletePod := func(node string) event {
		return event{"the user deletes the pod of " + node, func(m *model, _ *v1beta1.BroadcastJob) {
			for _, pod := range m.pods() {
				if eligible.NodeOf(pod) == node {
					if err := m.Server.Delete(m.Context(), pod); err != nil {
						m.Fatal(err)
					}
				}
			}
		}}
	}
	nodeEvent := func(told, node string, change func(*corev1.Node)) event {
		return event{told, func(m *model, _ *v1beta1.BroadcastJob) { m.node(node, change) }}
	}
	restart := event{"the manager restarts", func(m *model, _ *v1beta1.BroadcastJob) { m.restart(m.Server) }}
	jobs := func(all ...func(*v1beta1.BroadcastJob)) []func(*v1beta1.BroadcastJob) { return all }
	return map[string]story{
		"plain": {
			why:    "two nodes at a time, one is cordoned; the job is deleted a minute after its end",
			nodes:  "a b c d",
			job:    jobs(parallelism("2"), ttl(60)),
			events: map[int]event{0: nodeEvent("c is cordoned", "c", cordon)},
		},
		"nodes": {
			why:   "a pod that has not started leaves a node that is cordoned, one that runs stays; a node joins",
			nodes: "a b c", ends: map[string]string{"a": "runs", "b": "waits"},
			events: map[int]event{
				2: nodeEvent("a and b are cordoned", "a", cordon), 3: nodeEvent("", "b", cordon),
				4:  {"d joins", func(m *model, _ *v1beta1.BroadcastJob) { m.addNode("d") }},
				8:  {"b is uncordoned", func(m *model, _ *v1beta1.BroadcastJob) { delete(m.ends, "b"); m.node("b", uncordon) }},
				12: {"the pod of a ends", func(m *model, _ *v1beta1.BroadcastJob) { delete(m.ends, "a") }},
			},
		},
		"evicted": {
			why:   "a taint with NoExecute ends what runs, and leaves what has ended",
			nodes: "a b c", ends: map[string]string{"a": "runs", "c": "runs"},
			events: map[int]event{
				4: nodeEvent("a and b are tainted", "a", evict), 5: nodeEvent("", "b", evict),
				8:  nodeEvent("a has lost its taint", "a", func(n *corev1.Node) { n.Spec.Taints = nil }),
				12: {"all pods end", func(m *model, _ *v1beta1.BroadcastJob) { clear(m.ends) }},
			},
		},
		"paused": {
			why:   "the user pauses the job: pods that run go on",
			nodes: "a b c",
			job:   jobs(parallelism("1")),
			events: map[int]event{
				1: {"the job is paused", func(m *model, j *v1beta1.BroadcastJob) { m.change(j, paused(true)) }},
				6: {"the job goes on", func(m *model, j *v1beta1.BroadcastJob) { m.change(j, paused(false)) }},
			},
		},
		"pause": {
			why:   "a failed pod pauses the job until it is deleted",
			nodes: "a b c",
			job:   jobs(parallelism("1"), policy(v1beta1.FailurePolicyTypePause)),
			ends:  map[string]string{"b": "failed"},
			events: map[int]event{
				9: {"b is mended", func(m *model, _ *v1beta1.BroadcastJob) { delete(m.ends, "b") }}, 10: deletePod("b"),
			},
		},
		"continue": {
			why:   "a failed pod stops no other one",
			nodes: "a b c",
			job:   jobs(parallelism("1"), policy(v1beta1.FailurePolicyTypeContinue)),
			ends:  map[string]string{"a": "failed"},
		},
		"fail fast": {
			why:   "a failed pod ends the job, and the pods that run",
			nodes: "a b c d",
			job:   jobs(parallelism("3")),
			ends:  map[string]string{"a": "failed", "b": "runs"},
		},
		"deadline": {
			why:    "the deadline holds though the manager restarts",
			nodes:  "a b",
			job:    jobs(deadline(20)),
			ends:   map[string]string{"b": "runs"},
			events: map[int]event{2: restart, 5: restart},
		},
		"restarts": {
			why:   "the job waits for a pod that retries",
			nodes: "a b",
			job:   jobs(restarting, policy(v1beta1.FailurePolicyTypeContinue)),
			ends:  map[string]string{"a": "retries"},
		},
		"bound": {why: "pods are bound past the scheduler", nodes: "a b", options: broadcastjob.Options{Bind: true}},
		"never": {
			why:    "a job without end serves the nodes that join",
			nodes:  "a",
			job:    jobs(func(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.Type = v1beta1.Never }),
			events: map[int]event{6: {"b joins", func(m *model, _ *v1beta1.BroadcastJob) { m.addNode("b") }}},
		},
		"no node": {
			why:    "a job without a node waits for one",
			events: map[int]event{3: {"a joins", func(m *model, _ *v1beta1.BroadcastJob) { m.addNode("a") }}},
		},
		"ttl at end": {why: "without a time to live the job goes at its end", nodes: "a", job: jobs(ttl(0))},
	}
}

func evict(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute}}
}

// A story is a job, turn by turn: the requests of the reconciler, and the nodes after them.
func TestStories(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, s.nodes, s.options)
			if s.ends != nil {
				m.ends = s.ends
			}
			job := m.create(s.job...)
			m.Server.Requests()
			storytest.Compare(t, name, s.tell(m, job))
		})
	}
}

func (s story) tell(m *model, j *v1beta1.BroadcastJob) string {
	m.Helper()
	events := map[int]storytest.Event{}
	for i, e := range s.events {
		events[i] = storytest.Event{Line: e.told, Do: func() { e.do(m, j) }}
	}
	return storytest.Job{
		Why: s.why, Model: m.Model, Object: j, Events: events, Run: m.run, Picture: m.picture, Readable: m.readable,
		Counters: func() string { return counters(j) },
	}.Text(m)
}

// readable names pods by their nodes. Neighbours among the requests of pods are sorted, because they go out in
// parallel.
func (m *model) readable(requests []string) []string {
	for i, request := range requests {
		for _, pod := range m.pods() {
			request = strings.ReplaceAll(request, pod.Name, "of "+eligible.NodeOf(pod))
		}
		requests[i] = request
	}
	at := slices.IndexFunc(requests, func(r string) bool { return strings.Contains(r, "/status ") })
	slices.Sort(requests[:max(at, 0)])
	slices.Sort(requests[at+1:])
	return requests
}

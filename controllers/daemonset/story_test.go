package daemonset_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/test/storytest"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// event is what happens to the cluster before a turn.
type event struct {
	what string
	do   func(*model, *v1beta1.DaemonSet)
}

// A story is a rollout, turn by turn: the requests of the reconciler, and the pods after them. A pod is its node and
// the release of its image; a dash is not ready, a star terminating, an exclamation mark failed. In requests it is its
// node and which of the node's pods it is, by their names.
func TestStories(t *testing.T) {
	to := func(change func(*v1beta1.DaemonSet)) func(*model, *v1beta1.DaemonSet) {
		return func(m *model, set *v1beta1.DaemonSet) { m.change(set, change) }
	}
	release2 := event{"the image changes", to(image("agent:2"))}
	fail := event{"the pod of n1 fails", func(m *model, _ *v1beta1.DaemonSet) { m.fail(m.on("n1")) }}
	for name, story := range map[string]struct {
		why    string
		nodes  int
		set    []func(*v1beta1.DaemonSet)
		events map[int]event
	}{
		"partition": {
			"two pods at a time change in place, down to the partition, and the rest when it is lifted", 5,
			[]func(*v1beta1.DaemonSet){inPlace, unavailable("2"), partition("40%")},
			map[int]event{0: release2, 20: {"the partition is lifted", to(partition("0"))}},
		},
		"standard": {
			"pods are recreated two at a time, those of the last nodes first", 4,
			[]func(*v1beta1.DaemonSet){unavailable("2")},
			map[int]event{0: release2},
		},
		"surge": {
			"the old pod of a node goes when its new one is ready; one node at a time has two pods", 3,
			[]func(*v1beta1.DaemonSet){surge("1")},
			map[int]event{0: release2},
		},
		"nodes": {
			why: "a node that joins in mid-rollout gets the new release, one that is drained keeps its place, " +
				"and one that is removed is not waited for",
			nodes: 4,
			set:   []func(*v1beta1.DaemonSet){inPlace},
			events: map[int]event{
				0: release2,
				1: {"n5 joins", func(m *model, _ *v1beta1.DaemonSet) { m.addNode("n5") }},
				2: {"n2 is cordoned, and its pod evicted", func(m *model, _ *v1beta1.DaemonSet) {
					m.changeNode("n2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
					m.delete(m.on("n2"))
				}},
				4: {"n1 is removed", func(m *model, _ *v1beta1.DaemonSet) { m.delete(m.node("n1")) }},
				7: {"the garbage collector deletes the pod of n1", func(m *model, _ *v1beta1.DaemonSet) { m.delete(m.on("n1")) }},
			},
		},
		"taint": {
			"a taint with NoExecute ends the pod of a node; without it the node has a pod of the new release", 3,
			[]func(*v1beta1.DaemonSet){inPlace},
			map[int]event{
				0:  release2,
				1:  {"n1 gets a taint", func(m *model, _ *v1beta1.DaemonSet) { m.taint("n1", corev1.TaintEffectNoExecute) }},
				12: {"n1 loses the taint", func(m *model, _ *v1beta1.DaemonSet) { m.taint("n1") }},
			},
		},
		"hook": {
			"a pod waits for its hook; one that is wanted again is let go, and after its hook a pod is replaced", 2,
			[]func(*v1beta1.DaemonSet){hooked},
			map[int]event{
				0:  release2,
				10: {"the image changes back", to(image("agent:1"))},
				20: {"the image changes again", to(image("agent:2"))},
				30: {"the hook of the pod of n2 is done", func(m *model, _ *v1beta1.DaemonSet) {
					m.edit(m.on("n2"), `{"metadata":{"labels":{"hold":null}}}`)
				}},
			},
		},
		"failed": {
			"a pod that fails is replaced at once, and one that goes on failing after longer and longer pauses", 1,
			nil,
			map[int]event{0: fail, 6: fail, 14: fail, 24: fail, 40: fail},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, story.nodes, daemonset.Options{})
			set := m.create(story.set...)
			m.eventually(set, settled(int32(story.nodes)))
			m.Still()
			n := &narrator{model: m, names: map[string]string{}, count: map[string]int{}}
			n.meet()
			events := map[int]storytest.Event{}
			for turn, e := range story.events {
				events[turn] = storytest.Event{Line: e.what, Do: func() { e.do(m, set) }}
			}
			m.Server.Requests()
			storytest.Compare(t, name, storytest.Job{
				Why: story.why, Model: m.Model, Object: set, Events: events, Run: m.RunPods, Picture: n.picture,
				Counters: func() string { return "" }, Readable: n.readable,
			}.Text(t))
		})
	}
}

// narrator gives pods the names of their nodes.
type narrator struct {
	*model

	// names of pods in the story; count is how many each node has had.
	names map[string]string
	count map[string]int
}

// meet gives new pods their names.
func (n *narrator) meet() {
	n.Helper()
	for _, pod := range n.pods() {
		if n.names[pod.Name] == "" {
			node := eligible.NodeOf(&pod)
			n.count[node]++
			n.names[pod.Name] = fmt.Sprintf("%s.%d", node, n.count[node])
		}
	}
}

// readable orders the requests of a pass, which go out in parallel: revisions, then pods from the first node, then the
// status. The requests about one pod keep their order.
func (n *narrator) readable(requests []string) []string {
	n.Helper()
	n.meet()
	order := map[string]string{}
	for i, request := range requests {
		requests[i] = strings.ReplaceAll(request, "/agent/status", "/status")
		if m := regexp.MustCompile(` pods/([^ /]+)`).FindStringSubmatch(request); m != nil {
			requests[i] = strings.Replace(request, m[1], n.names[m[1]], 1)
			order[requests[i]] = "1" + n.names[m[1]]
		} else if !strings.Contains(request, " controllerrevisions/") {
			order[requests[i]] = "2"
		}
	}
	slices.SortStableFunc(requests, func(a, b string) int { return cmp.Compare(order[a], order[b]) })
	return requests
}

// picture names the pods that wait for their hook beside what each pod is.
func (n *narrator) picture() string {
	n.Helper()
	n.meet()
	text := n.model.picture()
	for _, pod := range n.pods() {
		if pod.DeletionTimestamp == nil &&
			pod.Labels[kruise.LifecycleStateKey] == string(kruise.LifecycleStatePreparingDelete) {
			text += fmt.Sprintf(" (%s waits)", n.names[pod.Name])
		}
	}
	return text
}

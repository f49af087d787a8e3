package daemonset_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/test/storytest"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// event is what happens to the cluster: at a turn, or before it where nothing else is left to do.
type event struct {
	turn int
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
	release2 := event{0, "the image changes", to(image("agent:2"))}
	fail := func(turn int) event {
		return event{turn, "the pod of n1 fails", func(m *model, _ *v1beta1.DaemonSet) { m.fail(m.on("n1")) }}
	}
	for name, story := range map[string]struct {
		why    string
		nodes  int
		set    []func(*v1beta1.DaemonSet)
		events []event
	}{
		"partition": {
			"two pods at a time change in place, down to the partition, and the rest when it is lifted", 5,
			[]func(*v1beta1.DaemonSet){inPlace, unavailable("2"), partition("40%")},
			[]event{release2, {50, "the partition is lifted", to(partition("0"))}},
		},
		"standard": {
			"pods are recreated two at a time, those of the last nodes first", 4,
			[]func(*v1beta1.DaemonSet){unavailable("2")},
			[]event{release2},
		},
		"surge": {
			"the old pod of a node goes when its new one is ready; one node at a time has two pods", 3,
			[]func(*v1beta1.DaemonSet){surge("1")},
			[]event{release2},
		},
		"nodes": {
			why: "a node that joins in mid-rollout gets the new release, one that is drained keeps its place, " +
				"and one that is removed is not waited for",
			nodes: 4,
			set:   []func(*v1beta1.DaemonSet){inPlace},
			events: []event{
				release2,
				{1, "n5 joins", func(m *model, _ *v1beta1.DaemonSet) { m.addNode("n5") }},
				{2, "n2 is cordoned, and its pod evicted", func(m *model, _ *v1beta1.DaemonSet) {
					m.changeNode("n2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
					m.delete(m.on("n2"))
				}},
				{4, "n1 is removed", func(m *model, _ *v1beta1.DaemonSet) { m.delete(m.node("n1")) }},
				{7, "the garbage collector deletes the pod of n1", func(m *model, _ *v1beta1.DaemonSet) { m.delete(m.on("n1")) }},
			},
		},
		"taint": {
			"a taint with NoExecute ends the pod of a node; without it the node has a pod of the new release", 3,
			[]func(*v1beta1.DaemonSet){inPlace},
			[]event{
				release2,
				{1, "n1 gets a taint", func(m *model, _ *v1beta1.DaemonSet) { m.taint("n1", corev1.TaintEffectNoExecute) }},
				{50, "n1 loses the taint", func(m *model, _ *v1beta1.DaemonSet) { m.taint("n1") }},
			},
		},
		"hook": {
			"a pod waits for its hook; one that is wanted again is let go, and after its hook a pod is replaced", 2,
			[]func(*v1beta1.DaemonSet){hooked},
			[]event{
				release2,
				{50, "the image changes back", to(image("agent:1"))},
				{100, "the image changes again", to(image("agent:2"))},
				{150, "the hook of the pod of n2 is done", func(m *model, _ *v1beta1.DaemonSet) {
					m.edit(m.on("n2"), `{"metadata":{"labels":{"hold":null}}}`)
				}},
			},
		},
		"failed": {
			"a pod that fails is replaced at once, and one that goes on failing after longer and longer pauses", 1,
			nil,
			[]event{fail(0), fail(30), fail(60), fail(90), fail(120), fail(150), fail(180)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, story.nodes, daemonset.Options{})
			set := m.create(story.set...)
			m.eventually(set, settled(int32(story.nodes)))
			m.Still()
			n := &narrator{model: m, names: map[string]string{}, count: map[string]int{}, started: m.Clock}
			fmt.Fprintf(n, "# %s\n", story.why)
			n.tell(set, story.events)
			fmt.Fprintf(n, "\n%s\n", n.picture())
			storytest.Compare(t, name, n.String())
		})
	}
}

// narrator writes down what happens.
type narrator struct {
	*model
	strings.Builder

	// names of pods in the story; count is how many each node has had.
	names   map[string]string
	count   map[string]int
	started time.Time
}

// tell takes turns until nothing is left to do, and all events have happened.
func (n *narrator) tell(set *v1beta1.DaemonSet, events []event) {
	n.Helper()
	idle := false
	for turn := range 250 {
		n.meet()
		for len(events) > 0 && (idle || events[0].turn <= turn) {
			events[0].do(n.model, set)
			fmt.Fprintf(n, "\n%6s  %s\n", n.since(), events[0].what)
			events, idle = events[1:], false
		}
		n.Server.Requests()
		before := n.Server.Version()
		n.Reconcile()
		n.meet()
		n.note()
		n.RunPods()
		switch {
		case n.Server.Version() != before:
			n.Advance(time.Second)
		case n.Due.After(n.Clock):
			n.Clock = n.Due
		case len(events) == 0:
			return
		default:
			idle = true
		}
	}
	n.Fatalf("the story does not end:\n%s", n)
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

// note writes the requests of a pass, which go out in parallel: revisions, then pods from the first node, then the
// status. The requests about one pod keep their order.
func (n *narrator) note() {
	n.Helper()
	type line struct{ order, text string }
	var lines []line
	for _, request := range n.Server.Requests() {
		l := line{"3", strings.ReplaceAll(request, "/agent/status", "/status")}
		if m := regexp.MustCompile(` pods/([^ /]+)`).FindStringSubmatch(request); m != nil {
			l.order, l.text = "2"+n.names[m[1]], strings.Replace(request, m[1], n.names[m[1]], 1)
		} else if strings.Contains(request, " controllerrevisions/") {
			l.order = "1"
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		return
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.order, b.order) })
	fmt.Fprintf(n, "%6s  %s\n", n.since(), n.picture())
	for _, l := range lines {
		fmt.Fprintf(n, "        %s\n", l.text)
	}
}

// picture names the pods that wait for their hook beside what each pod is.
func (n *narrator) picture() string {
	n.Helper()
	text := n.model.picture()
	for _, pod := range n.pods() {
		if pod.DeletionTimestamp == nil &&
			pod.Labels[kruise.LifecycleStateKey] == string(kruise.LifecycleStatePreparingDelete) {
			text += fmt.Sprintf(" (%s waits)", n.names[pod.Name])
		}
	}
	return text
}

func (n *narrator) since() time.Duration { return n.Clock.Sub(n.started).Round(time.Second) }

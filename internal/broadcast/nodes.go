package broadcast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// State is how far a job is on a node.
type State string

const (
	// Due is a node that fits and has no pod.
	Due State = "Due"
	// Running is a node with a pod that has not ended.
	Running State = "Running"
	// Succeeded is a node whose pod succeeded.
	Succeeded State = "Succeeded"
	// Failed is a node whose pod failed, or restarted more often than the failure policy allows. The job waits for the
	// end of the latter.
	Failed State = "Failed"
	// Ending is a node whose pod is deleted before its end. The node gets another one, if it fits.
	Ending State = "Ending"
	// Skipped is a node that does not fit.
	Skipped State = "Skipped"
)

// Node is the state of a job on a node.
type Node struct {
	Name  string
	State State
	// Pod is the pod of the node, one that has not ended before others; nil where the node has none.
	Pod *corev1.Pod
	// Reason is why a node is skipped.
	Reason eligible.Reason
}

// rules of a pod spec. Cordons and requests keep new pods from a node, and leave those that run.
func rules() eligible.Options { return eligible.Options{Cordons: true, Requests: true} }

// Rule returns which nodes get a pod of a template: those where the verdict says Run.
func Rule(template *corev1.PodTemplateSpec) *eligible.Rule {
	return eligible.Compile(&template.Spec, rules())
}

// PodRule is the rule of a pod that has not ended, compiled for questions about nodes. It may be used concurrently.
type PodRule struct {
	rule  *eligible.Rule
	bound bool
}

// NewPodRule returns the rule of a pod.
func NewPodRule(pod *corev1.Pod) *PodRule {
	return &PodRule{eligible.Compile(&pod.Spec, rules()), pod.Spec.NodeName != ""}
}

// Check returns the verdict about the pod on a node. A pod that waits for the scheduler stays only where a new one
// would be created.
func (r *PodRule) Check(node *corev1.Node) eligible.Verdict {
	verdict := r.rule.Check(node)
	verdict.Stay = verdict.Run || r.bound && verdict.Stay
	return verdict
}

// Keeps reports whether the pod may stay on a node.
func (r *PodRule) Keeps(node *corev1.Node) bool { return r.Check(node).Stay }

// Deletion is a pod to delete, and why.
type Deletion struct {
	Pod  *corev1.Pod
	Note note.Note

	class class
}

// survey is the job, node by node and pod by pod.
type survey struct {
	nodes []Node
	// due are the names of the nodes that get a pod.
	due []string
	// desired counts the nodes that have a pod or get one, and served those of them where nothing is left to wait for.
	desired, served int32
	// counts of pods by class, wherever they are.
	counts map[class]int32
	// running counts the active pods that take part in the parallelism: all but those on nodes that do not exist.
	// leaving are those to be deleted, which take part until they are.
	running, leaving int32
	// failedPods are the names of the pods that count as failed.
	failedPods []string
	deletions  []Deletion
	notes      []note.Note
}

// look makes the survey.
func (in *Input) look() *survey {
	s := &survey{counts: map[class]int32{}}
	byNode := map[string][]member{}
	for _, pod := range in.sortedPods() {
		m := member{pod, classOf(in.Job, pod)}
		s.counts[m.class]++
		if m.class == failed || m.class == exceeded {
			s.failedPods = append(s.failedPods, pod.Name)
		}
		if m.class == exceeded {
			s.notes = append(s.notes,
				blocked(NoteRestarts, pod.Name, fmt.Sprintf("the containers have restarted %d times, the limit is %d",
					Restarts(pod), in.Job.Spec.FailurePolicy.RestartLimit)))
		}
		node := eligible.NodeOf(pod)
		byNode[node] = append(byNode[node], m)
	}
	rule := Rule(&in.Job.Spec.Template)
	skipped := map[eligible.Reason][]string{}
	for _, node := range in.sortedNodes() {
		visit := &visit{survey: s, node: node, rule: rule}
		visit.pods(byNode[node.Name])
		delete(byNode, node.Name)
		if visit.state.State == Skipped {
			skipped[visit.state.Reason] = append(skipped[visit.state.Reason], node.Name)
		}
		s.nodes = append(s.nodes, visit.state)
	}
	s.explainSkipped(skipped)
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		s.stray(node, byNode[node])
	}
	return s
}

func (s *survey) explainSkipped(skipped map[eligible.Reason][]string) {
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		names := skipped[reason]
		n := eligible.Verdict{Reason: reason}.Note(names[0])
		s.notes = append(s.notes, note.Note{
			Code: n.Code, Text: fmt.Sprintf("%d nodes get no pod (%s): %s", len(names), n.Text, some(names)),
		})
	}
	if s.desired == 0 {
		s.notes = append(s.notes, waiting(NoteNoNode, "", "no node fits the pod template"))
	}
}

// stray looks at the pods of a node that does not exist, or of none. The garbage collector of pods deletes those that
// are bound.
func (s *survey) stray(node string, pods []member) {
	for _, m := range pods {
		switch {
		case m.class != active:
		case node == "":
			s.running++
		case m.Spec.NodeName == "":
			s.remove(m, waiting(NoteNodeGone, m.Name, "the pod waits for node "+node+", which does not exist"))
		}
	}
}

func (s *survey) remove(m member, why note.Note) {
	s.deletions = append(s.deletions, Deletion{m.Pod, why, m.class})
	s.notes = append(s.notes, why)
}

// visit looks at one node.
type visit struct {
	*survey
	node  *corev1.Node
	rule  *eligible.Rule
	state Node
}

func (v *visit) pods(pods []member) {
	v.state = Node{Name: v.node.Name}
	if len(pods) == 0 {
		v.vacant()
		return
	}
	slices.SortFunc(pods, rank)
	pods = slices.DeleteFunc(pods, v.leaves)
	if len(pods) == 0 || pods[0].class == ending && v.state.State == Skipped {
		return
	}
	m := pods[0]
	v.state = Node{Name: v.node.Name, State: stateOf(m.class), Pod: m.Pod}
	switch m.class {
	case succeeded, failed:
		v.served++
	case ending:
		if !v.rule.Check(v.node).Run { // nothing runs there once the pod is gone
			return
		}
	}
	v.desired++
	for i := range pods {
		if pods[i].class == active {
			v.running++
		}
		if i > 0 && pods[i].class != ending {
			v.notes = append(v.notes,
				blocked(NoteDuplicate, pods[i].Name, fmt.Sprintf("node %s has pod %s", v.node.Name, m.Name)))
		}
	}
}

// leaves deletes a pod that has not ended from a node that does not fit any more, and reports whether it does.
func (v *visit) leaves(m member) bool {
	if m.class != active && m.class != exceeded {
		return false
	}
	verdict := NewPodRule(m.Pod).Check(v.node)
	if verdict.Stay {
		return false
	}
	v.state = Node{Name: v.node.Name, State: Skipped, Pod: m.Pod, Reason: verdict.Reason}
	if m.class == active {
		v.leaving++
	}
	v.remove(m,
		waiting(NoteMisplaced, m.Name, fmt.Sprintf("node %s does not fit any more (%s)", v.node.Name, verdict.Reason)))
	return true
}

// vacant looks at a node without a pod.
func (v *visit) vacant() {
	verdict := v.rule.Check(v.node)
	if !verdict.Run {
		v.state.State, v.state.Reason = Skipped, verdict.Reason
		return
	}
	v.state.State = Due
	v.desired++
	v.due = append(v.due, v.node.Name)
}

// sortedNodes are the nodes by name, each once.
func (in *Input) sortedNodes() []*corev1.Node {
	nodes := slices.DeleteFunc(slices.Clone(in.Nodes), func(n *corev1.Node) bool { return n == nil })
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(nodes, func(a, b *corev1.Node) bool { return a.Name == b.Name })
}

func (in *Input) sortedPods() []*corev1.Pod {
	pods := slices.DeleteFunc(slices.Clone(in.Pods), func(p *corev1.Pod) bool { return p == nil })
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(pods, func(a, b *corev1.Pod) bool { return a.Name == b.Name })
}

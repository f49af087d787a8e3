package broadcastjob

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// ruleFor returns which nodes pods of a spec fit. Cordons and requests keep new pods from a node, and leave those that
// run.
func ruleFor(spec *corev1.PodSpec) *eligible.Rule {
	return eligible.Compile(spec, eligible.Options{Cordons: true, Requests: true})
}

// stays reports whether a pod may stay on the node of a verdict. A pod that waits for the scheduler stays only where a
// new one would be created.
func stays(pod *corev1.Pod, v eligible.Verdict) bool {
	return v.Run || pod.Spec.NodeName != "" && v.Stay
}

// survey is the job, node by node and pod by pod.
type survey struct {
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
	// misplaced are pods to delete, because of their nodes.
	misplaced []member
	notes     []note.Note
}

//nolint:revive // the arguments of the format besides four
func (s *survey) explain(level note.Level, code, object, format string, args ...any) {
	s.notes = append(s.notes, note.Note{Level: level, Code: code, Object: object, Text: fmt.Sprintf(format, args...)})
}

// look makes the survey.
func (s *snapshot) look() *survey {
	all := &survey{counts: map[class]int32{}}
	byNode := map[string][]member{}
	for _, pod := range byName(s.pods) {
		m := member{pod, classOf(s.job, pod)}
		all.counts[m.class]++
		if m.class == failed || m.class == exceeded {
			all.failedPods = append(all.failedPods, pod.Name)
		}
		if m.class == exceeded {
			all.explain(note.Blocked, "RestartLimitExceeded", pod.Name,
				"the containers have restarted %d times, the limit is %d", restarts(pod), s.job.Spec.FailurePolicy.RestartLimit)
		}
		node := eligible.NodeOf(pod)
		byNode[node] = append(byNode[node], m)
	}
	rule := ruleFor(&s.job.Spec.Template.Spec)
	for _, node := range byName(s.nodes) {
		all.visit(node, rule, byNode[node.Name])
		delete(byNode, node.Name)
	}
	if all.desired == 0 {
		all.explain(note.Waiting, "NoNodeFits", "", "no node fits the pod template")
	}
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		all.stray(node, byNode[node])
	}
	return all
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
			s.misplaced = append(s.misplaced, m)
			s.explain(note.Waiting, "NodeGone", m.Name, "the pod waits for node %s, which does not exist", node)
		}
	}
}

// visit looks at a node and its pods.
func (s *survey) visit(node *corev1.Node, rule *eligible.Rule, pods []member) {
	verdict := rule.Check(node)
	if len(pods) == 0 {
		if verdict.Run {
			s.desired++
			s.due = append(s.due, node.Name)
		}
		return
	}
	slices.SortFunc(pods, rank)
	all := len(pods)
	pods = slices.DeleteFunc(pods, func(m member) bool { return s.leaves(node, m) })
	switch {
	case len(pods) == 0:
		return
	case pods[0].class == ending:
		if len(pods) < all || !verdict.Run { // nothing runs there once the pod is gone
			return
		}
	case pods[0].class == succeeded || pods[0].class == failed:
		s.served++
	}
	s.desired++
	for i, m := range pods {
		if m.class == active {
			s.running++
		}
		if i > 0 && m.class != ending { // both stay, and the job waits for both
			s.explain(note.Blocked, noteDuplicate, m.Name, "node %s has pod %s", node.Name, pods[0].Name)
		}
	}
}

// leaves reports whether the node of a pod that has not ended no longer fits.
func (s *survey) leaves(node *corev1.Node, m member) bool {
	if m.class != active && m.class != exceeded {
		return false
	}
	verdict := ruleFor(&m.Spec).Check(node)
	if stays(m.Pod, verdict) {
		return false
	}
	if m.class == active {
		s.leaving++
	}
	s.misplaced = append(s.misplaced, m)
	s.explain(note.Waiting, "NodeNoLongerFits", m.Name, "node %s no longer fits (%s)", node.Name, verdict.Reason)
	return true
}

// byName returns objects in the order of their names.
func byName[T metav1.Object](objects []T) []T {
	return slices.SortedFunc(slices.Values(objects), func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
}

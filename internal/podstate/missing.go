package podstate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

// settle is how long the caches of the pod webhook may take to show a released record. A pod that was created within
// settle after the release may still have the dropped labels, and counts as stuck.
const settle = 5 * time.Second

// hasLabels reports whether a node has all of the labels.
func hasLabels(node *corev1.Node, labels map[string]string) bool {
	for k, v := range labels {
		if found, ok := node.Labels[k]; !ok || found != v {
			return false
		}
	}
	return true
}

// requiredOf returns the required labels of a record.
func requiredOf(s *State, r record) map[string]string {
	return values(r.NodeTopologyLabels, required(s))
}

// isOnNode reports whether the node of a record still has the required labels. It is true if there are none.
func isOnNode(s *State, r record, nodes map[string]*corev1.Node) bool {
	labels, node := requiredOf(s, r), nodes[r.NodeName]
	return len(labels) == 0 || node != nil && hasLabels(node, labels)
}

// NeedsAllNodes reports whether Plan looks for nodes other than those of pods and records: for the required labels of a
// record whose node lacks them, or for a pod that waits for labels that its record no longer requires.
func NeedsAllNodes(s *State, nodes map[string]*corev1.Node) bool {
	for _, r := range s.Status.PodStates {
		if r.ReleasedAt != nil || !isOnNode(s, r, nodes) {
			return true
		}
	}
	return false
}

// hasNode reports whether any node has all of the labels.
func (p *planner) hasNode(labels map[string]string) bool {
	for _, node := range p.Nodes {
		if hasLabels(node, labels) {
			return true
		}
	}
	return false
}

// isAvailable reports whether any node has the required labels of a record.
func (p *planner) isAvailable(r record) bool {
	return isOnNode(p.State, r, p.Nodes) || p.hasNode(requiredOf(p.State, r))
}

// findMissing sets missingSince in the records whose required labels no node has, and clears it in the others. It
// releases a record after the duration of the annotation, and sets RequeueAfter to the earliest release.
func (p *planner) findMissing() {
	release, err := ReleaseAfter(p.State)
	if err != nil {
		p.note(note.Blocked, NoteBadRelease, "",
			fmt.Sprintf("annotation %s: %v", v1beta1.AnnotationReleaseMissingTopologyAfter, err))
	}
	now := metav1.Time{Time: p.Now.Truncate(time.Second)}
	for _, name := range p.names() {
		r := p.next[name]
		switch {
		case p.isAvailable(r):
			r.MissingSince = nil
			p.next[name] = r
			continue
		case r.MissingSince == nil: // continues after the switch
			r.MissingSince = &now
		}
		if release != nil {
			left := r.MissingSince.Add(*release).Sub(p.Now)
			if left <= 0 {
				r.NodeTopologyLabels, r.MissingSince, r.ReleasedAt = p.release(r), nil, &now
				p.next[name], p.released = r, true
				p.note(note.Info, NoteReleased, name, "the pod no longer requires labels that no node has")
				continue
			}
			if p.pass.RequeueAfter == 0 || left < p.pass.RequeueAfter {
				p.pass.RequeueAfter = left
			}
		}
		p.next[name] = r
		p.missing = append(p.missing, name)
		p.note(note.Blocked, NoteMissing, name, fmt.Sprintf("no node has the required labels of node %s", r.NodeName))
	}
}

// release returns the labels of a record without those that make it unsatisfiable. It checks the required keys in their
// order, and drops a label if no node has it together with the labels kept so far.
func (p *planner) release(r record) map[string]string {
	labels, kept := maps.Clone(r.NodeTopologyLabels), map[string]string{}
	for _, key := range required(p.State) {
		value, ok := labels[key]
		if !ok {
			continue
		}
		if kept[key] = value; !p.hasNode(kept) {
			delete(kept, key)
			delete(labels, key)
		}
	}
	return labels
}

// findStuck adds the pending pods whose nodeSelector requires labels that no node has and that their record no longer
// has. It reads the stored records: a release of this pass must be written before its pods are deleted.
func (p *planner) findStuck() {
	for _, pod := range p.Pods {
		r, ok := p.State.Status.PodStates[pod.Name]
		if !ok || r.ReleasedAt == nil || !active(pod) || pod.Spec.NodeName != "" ||
			pod.Annotations[kruise.InjectedPersistentPodStateKey] != p.State.Name ||
			pod.CreationTimestamp.After(r.ReleasedAt.Add(settle)) {
			continue
		}
		released := values(pod.Spec.NodeSelector, required(p.State))
		maps.DeleteFunc(released, func(key, _ string) bool { _, kept := r.NodeTopologyLabels[key]; return kept })
		if len(released) > 0 && !p.hasNode(released) {
			p.pass.Stuck = append(p.pass.Stuck, pod)
		}
	}
}

// conditions returns the status conditions. It adds TopologyAvailable only once a record is missing or released.
func (p *planner) conditions() []metav1.Condition {
	all := slices.Clone(p.State.Status.Conditions)
	c := metav1.Condition{
		Type:               v1beta1.PersistentPodStateTopologyAvailable,
		Status:             metav1.ConditionTrue,
		Reason:             v1beta1.PersistentPodStateNodesFound,
		Message:            "Nodes have the required labels of all pods",
		ObservedGeneration: p.State.Generation,
		LastTransitionTime: metav1.Time{Time: p.Now.Truncate(time.Second)},
	}
	if len(p.missing) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, v1beta1.PersistentPodStateNodesMissing
		c.Message = fmt.Sprintf("No node has the required labels of %s (%s)", p.missing[0], p.next[p.missing[0]].NodeName)
		if n := len(p.missing) - 1; n > 0 {
			c.Message += fmt.Sprintf(" and %d more", n)
		}
	} else if !p.released && apimeta.FindStatusCondition(all, c.Type) == nil {
		return all
	}
	apimeta.SetStatusCondition(&all, c)
	return all
}

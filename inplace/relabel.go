package inplace

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/lifecycle"
)

// Relabel is when the revision label of a pod changes during an update.
type Relabel string

const (
	// RelabelFirst changes the label together with the change, as OpenKruise does. It is the default.
	RelabelFirst Relabel = ""
	// RelabelLast changes the label when the containers run the change and the pod is ready again. It is for controllers
	// that count a pod with the new label as updated, as those of Kubernetes do. Until then the annotation
	// PendingRevisionKey holds the revision.
	RelabelLast Relabel = "Last"
	// RelabelDone ends such updates as soon as the containers run the change, ready or not.
	RelabelDone Relabel = "Done"
)

// PendingRevisionKey is the annotation of a pod that an update with RelabelLast is changing. Its value is what the
// revision label becomes.
const PendingRevisionKey = "kruisekit.dev/pending-revision"

// RevisionOf returns the revision that the spec of a pod has, as the revision label holds it: the one that an update
// with RelabelLast is moving the pod to, else the value of the label.
func RevisionOf(pod *corev1.Pod, p Policy) string {
	return cmp.Or(p.pending(pod), p.Keys.RevisionOf(pod))
}

// pending returns the revision that waits in a pod for its label. With RelabelFirst none does: the annotation is then
// one of the template.
func (p Policy) pending(pod *corev1.Pod) string {
	if p.Relabel == RelabelFirst {
		return ""
	}
	return pod.Annotations[PendingRevisionKey]
}

// Settled reports whether no update of a pod is under way, and the revision label of the pod is that of its spec.
func Settled(pod *corev1.Pod, p Policy) bool {
	done, _ := Completed(pod, p)
	return done && p.pending(pod) == ""
}

// relabel writes the revision label of a pod whose update is complete, and with RelabelLast once the pod is ready.
func (l look) relabel() Action {
	pending := l.policy.pending(l.pod)
	if pending == "" {
		return Action{Verdict: Complete}
	}
	c := lifecycle.ConditionOf(l.pod, corev1.PodReady)
	if l.policy.Relabel == RelabelLast && (c == nil || c.Status != corev1.ConditionTrue) {
		return wait(recheck, newNote(l.pod, NoteRelabel, "the revision label changes when the pod is ready"))
	}
	return l.relabelTo(pending)
}

// relabelTo is a function of its own so that Next allocates nothing for a pod that needs nothing.
func (l look) relabelTo(pending string) Action {
	return l.patch(StepRelabel, func(p *patch) error {
		e := l.edit()
		e.annotations[PendingRevisionKey], e.relabelTo = nil, &pending
		return e.encode(p)
	})
}

// relabelNow reports whether the first write of an update changes the revision label: the policy says so, the node has
// nothing to do, or a pod that was about to leave the revision goes back to it.
func (e *edit) relabelNow() bool {
	return e.policy.Relabel == RelabelFirst || e.settled || e.policy.Keys.RevisionOf(e.pod) == e.update.Revision
}

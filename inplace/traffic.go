package inplace

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// inTraffic reports whether the pod is not marked yet, or marked and still ready: it may have become ready after it was
// read for the mark, which then did not set Ready to False.
func (l look) inTraffic() bool {
	return statusOfCondition(l.pod, l.gate()) != corev1.ConditionFalse ||
		lifecycle.Ready(l.pod, l.now) != nil
}

// notReady takes a pod out of traffic.
func (l look) notReady() *write.Write {
	return l.write(write.Status, func(p *patch) error {
		mark := corev1.PodCondition{
			Type: l.gate(), Status: corev1.ConditionFalse,
			Reason: kruise.InPlaceUpdateReadyReasonStart, LastTransitionTime: metav1.NewTime(l.now),
		}
		l.unchanged(p)
		changes := []corev1.PodCondition{mark}
		if ready := lifecycle.Ready(l.pod, l.now, mark); ready != nil {
			changes = append(changes, *ready)
		}
		p.ops = append(p.ops, lifecycle.SetConditions(l.pod, changes...)...)
		return nil
	})
}

// takesOut reports whether a change takes a pod out of traffic. Without the gate nothing could.
func (p Policy) takesOut(pod *corev1.Pod, c *Change) bool {
	if c.Empty() || !lifecycle.HasGate(pod, p.Keys.InPlaceReadyOf(pod)) {
		return false
	}
	if p.Unready == UnreadyAlways && (len(c.Resources) == 0 || len(c.Images) > 0 || len(c.Env) > 0) {
		return true
	}
	return c.restartsAny(pod)
}

// restartsAny reports whether a change restarts a container of a pod.
func (c *Change) restartsAny(pod *corev1.Pod) bool {
	return len(c.Env) > 0 || len(c.Restarts(pod)) > 0 // a daemon restarts no container of a pod in traffic
}

func statusOfCondition(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	if c := lifecycle.ConditionOf(pod, t); c != nil {
		return c.Status
	}
	return ""
}

// EnsureReadinessGate adds the readiness gate InPlaceUpdateReady, or the one that the keys name, to the spec of a pod
// that is about to be created, and reports whether it was missing. Without the gate no write takes the pod out of
// traffic while its containers restart. The gates of a created pod cannot change. Call Next for each pod that has the
// gate: it opens the gate.
func EnsureReadinessGate(spec *corev1.PodSpec, keys *kruise.Keys) bool {
	gate := keys.InPlaceReadyGate()
	if slices.ContainsFunc(spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == gate
	}) {
		return false
	}
	spec.ReadinessGates = append(slices.Clip(spec.ReadinessGates), corev1.PodReadinessGate{
		ConditionType: gate,
	})
	return true
}

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

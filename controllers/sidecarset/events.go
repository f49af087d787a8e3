package sidecarset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/write"
)

// Reasons of events.
const (
	reasonNotUpgradable = "NotUpgradablePods"
	reasonReset         = "ResetContainerSucceed"
	reasonFailedReset   = "ResetContainerFailed"
	// The reference emits none of these: a spec that cannot be used, updates that stand still, and pods that cannot be updated.
	reasonInvalidSpec = "InvalidSpec"
	reasonLimited     = "UpdateLimited"
	reasonFailed      = "FailedUpdate"
)

// emitInvalid reports what of a spec cannot be used, once for a spec.
func (p *pass) emitInvalid(err error) {
	if p.set.Status.ObservedGeneration != p.set.Generation {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonInvalidSpec, err.Error())
	}
}

// emitBlocked reports pods of which this pass found that the set cannot update them.
func (p *pass) emitBlocked() {
	if n := p.plan.Blocked(); n > 0 {
		p.api.Event(p.set, corev1.EventTypeNormal, reasonNotUpgradable, fmt.Sprintf("%d pods cannot be updated in place, since more than images has changed", n))
	}
}

// emitReset reports the end of a hot upgrade.
func (p *pass) emitReset(pod *corev1.Pod, err error) {
	switch {
	case err == nil:
		p.api.Event(pod, corev1.EventTypeNormal, reasonReset, "reset sidecar container image empty successfully")
	case !write.IsOutdated(err):
		p.api.Event(pod, corev1.EventTypeWarning, reasonFailedReset, fmt.Sprintf("failed to reset a sidecar container to the empty image: %v", err))
	}
}

// emitFailures reports pods whose records cannot be read, and refused changes, once as long as these and the spec are the same. A pass
// without failures resets nothing: a pod whose update was refused is held for a while.
func (p *pass) emitFailures() {
	if text := p.plan.Failures(); text != "" && p.failures.Changed(p.set.Name, fmt.Sprint(p.set.Generation, text)) {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonFailed, text)
	}
}

// emitStall reports updates that wait for pods to become ready, of which none has for a while.
func (p *pass) emitStall() {
	var text string
	after := p.options.Stalled
	p.state.stall, text, after = p.state.stall.Next(p.set, p.plan.Result(), p.api.Now(), after)
	p.requeue.In(after)
	if text != "" {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonLimited, text)
	}
}

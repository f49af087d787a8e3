package sidecarset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/write"
)

// Reasons of events.
const (
	reasonNotUpgradable = "NotUpgradablePods"
	reasonReset         = "ResetContainerSucceed"
	reasonFailedReset   = "ResetContainerFailed"
	// The reference emits none of these: an invalid spec, namespaces whose pods are never sent to the webhook, pods without containers of
	// the set, updates without progress, and pods that cannot be updated.
	reasonInvalidSpec = "InvalidSpec"
	reasonSpared      = "NamespacesSpared"
	reasonLacking     = "ContainersMissing"
	reasonLimited     = "UpdateLimited"
	reasonFailed      = "FailedUpdate"
)

// emitInvalid reports what of a spec is invalid, once for a spec: by the rules of the webhook, which may have been another one when the
// set was stored. Pods follow the set as far as the spec can be read. why is reported where the rules find nothing.
func (p *pass) emitInvalid(why error) {
	if p.state.judged == p.set.Generation {
		return
	}
	p.state.judged = p.set.Generation
	if faults := validation.SidecarSet(p.set); p.malformed == nil && len(faults) > 0 {
		why = faults.ToAggregate()
	}
	if why != nil {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonInvalidSpec, why.Error())
	}
	if text := validation.SidecarSetSpared(p.set, scope.Sent(p.options.Namespace)); text != "" {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonSpared, text)
	}
}

// emitLacking reports pods that lack containers, once until all pods have them.
func (p *pass) emitLacking() {
	n := p.plan.Result().Lacking
	p.meters.lacking.WithLabelValues(p.set.Name).Set(float64(n))
	if n > 0 && !p.state.lacking {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonLacking, fmt.Sprintf("%d pods that this set selects lack containers of it; only new pods get them", n))
	}
	p.state.lacking = n > 0
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
	p.meters.stands(p.set.Name, p.state.stall.Stands(p.api.Now(), p.options.Stalled))
	if text != "" {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonLimited, text)
	}
}

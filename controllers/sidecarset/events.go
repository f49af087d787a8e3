package sidecarset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/internal/failure"
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

// emitInvalid reports what of a spec cannot be used, unless the status is of that spec already.
func (p *pass) emitInvalid(err error) {
	if p.set.Status.ObservedGeneration != p.set.Generation {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonInvalidSpec, err.Error())
	}
}

// emitFailures reports pods whose records cannot be read, and refused writes, once as long as these and the spec are the same.
// A pass without failures resets nothing: a pod whose update was refused is held for a while.
func (p *pass) emitFailures(failed error) {
	refused := slices.DeleteFunc(failure.Parts(failed), func(err error) bool {
		return !write.IsRefused(err) || apierrors.IsConflict(err)
	})
	text := p.plan.Failures(refused)
	if text != "" && p.failures.Changed(p.set.Name, fmt.Sprint(p.set.Generation, text)) {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonFailed, text)
	}
}

// emitStall reports updates that wait for others to become ready, and of which none has for a while.
func (p *pass) emitStall() {
	var text string
	after := p.options.Stalled
	p.state.stall, text, after = p.state.stall.Next(p.set, p.plan, p.api.Now(), after)
	p.requeue.In(after)
	if text != "" {
		p.api.Event(p.set, corev1.EventTypeWarning, reasonLimited, text)
	}
}

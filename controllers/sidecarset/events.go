package sidecarset

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/sidecar/rollout"
)

// Reasons of events.
const (
	reasonNotUpgradable = "NotUpgradablePods"
	reasonReset         = "ResetContainerSucceed"
	reasonFailedReset   = "ResetContainerFailed"
	// reasonInvalidSpec is not among the reference's, which does not tell.
	reasonInvalidSpec = "InvalidSpec"
)

// tell records an event. It comes after the write that it is about.
func (r *Reconciler) tell(about runtime.Object, eventType, reason, text string) {
	if r.options.Recorder != nil {
		r.options.Recorder.Event(about, eventType, reason, text)
	}
}

// tellUnfit tells what of a spec cannot be used, when the status does not speak of that spec yet.
func (a *act) tellUnfit(err error) {
	if err != nil && a.set.Status.ObservedGeneration != a.set.Generation {
		a.tell(a.set, corev1.EventTypeWarning, reasonInvalidSpec, err.Error())
	}
}

// unfit is the part of an error that only another spec can mend.
func unfit(err error) error {
	var spec *rollout.SpecError
	if errors.As(err, &spec) {
		return spec
	}
	return nil
}

// outcome is the error of a pass with an unfit spec. When nothing else is wrong it is not tried again.
func outcome(err error) error {
	if onlyUnfit(err) {
		return reconcile.TerminalError(err)
	}
	return err
}

func onlyUnfit(err error) bool {
	switch e := err.(type) { //nolint:errorlint // each of the joined ones is looked at
	case *rollout.SpecError:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !onlyUnfit(err) })
	}
	return false
}

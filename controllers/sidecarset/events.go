package sidecarset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// reasonLimited is not either: it is of updates that stand still.
	reasonLimited = "UpdateLimited"
	// reasonFailed is not either: it is of pods that cannot be brought to the set, and nobody else tells their owners.
	reasonFailed = "FailedUpdate"
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

// mostText of an event.
const mostText = 1000

// tellFailed tells of pods whose records cannot be read, or whose writes were refused, once as long as these are the same and so
// is the spec. What the API server fails with is not told: the next attempt may succeed.
func (a *act) tellFailed(led error) {
	var all []string
	for _, n := range a.plan.Notes {
		if n.Code == rollout.NoteUnreadable {
			all = append(all, fmt.Sprintf("pod %s: %s", n.Object, n.Text))
		}
	}
	for _, err := range joined(led) {
		if isRefusal(err) && !apierrors.IsConflict(err) {
			all = append(all, err.Error())
		}
	}
	if len(all) == 0 {
		return // a pod whose update was refused is left alone for a while
	}
	slices.Sort(all)
	text := strings.ToValidUTF8(all[0][:min(len(all[0]), mostText)], "")
	if len(all) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(all)-1)
	}
	if a.memory.says(a.set.Name, a.Reconciler, fmt.Sprint(a.set.Generation, text)) {
		a.tell(a.set, corev1.EventTypeWarning, reasonFailed, text)
	}
}

// tellStalled tells of updates that wait for others to become ready, and of which none has for a while.
func (a *act) tellStalled() {
	s, step := &a.plan.Status, ""
	i := slices.IndexFunc(a.plan.Notes, func(n rollout.Note) bool { return n.Code == rollout.NoteUpdateLimited })
	if i >= 0 {
		step = fmt.Sprint(a.set.Generation, s.MatchedPods, s.UpdatedPods, s.UpdatedReadyPods)
	}
	told, left := a.memory.stalls(a.set.Name, a.Reconciler, a.set.Generation, step)
	switch {
	case told:
		a.tell(a.set, corev1.EventTypeWarning, reasonLimited, a.plan.Notes[i].Text)
	case left > 0:
		a.wake(left)
	}
}

// joined are the errors that one is made of.
func joined(err error) []error {
	e, is := err.(interface{ Unwrap() []error })
	if !is {
		return []error{err}
	}
	var all []error
	for _, part := range e.Unwrap() {
		all = append(all, joined(part)...)
	}
	return all
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

package statefulset

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Reasons of events.
const (
	reasonCreated        = "SuccessfulCreate"
	reasonFailedCreate   = "FailedCreate"
	reasonDeleted        = "SuccessfulDelete"
	reasonFailedDelete   = "FailedDelete"
	reasonUpdated        = "SuccessfulUpdate"
	reasonFailedUpdate   = "FailedUpdate"
	reasonUpdatedInPlace = "SuccessfulUpdatePodInPlace"
	reasonFailedInPlace  = "FailedUpdatePodInPlace"
	// reasonInvalidSpec is not among those of the reference, which emits none.
	reasonInvalidSpec = "InvalidSpec"
)

// emitWrite emits the event of a write, if it has one.
func (r *Reconciler) emitWrite(s *snapshot, w *workload.Write, answer write.Object, err error) {
	switch _, isPod := w.Object.(*corev1.Pod); {
	case w.Verb == write.Create && !isPod && apierrors.IsAlreadyExists(err): // the next pass observes the claim
	case w.Verb == write.Create && !isPod:
		r.emitResult(s, w, result{"create Claim %s in StatefulSet %s success", "create Claim %s in StatefulSet %s failed error: %v", reasonCreated, reasonFailedCreate, err})
	case w.Verb == write.Create:
		r.emitResult(s, w, result{"create Pod %s in StatefulSet %s successful", "create Pod %s in StatefulSet %s failed error: %v", reasonCreated, reasonFailedCreate, err})
	case w.Verb == write.Delete:
		if apierrors.IsNotFound(err) {
			err = nil
		}
		r.emitResult(s, w, result{"delete Pod %s in StatefulSet %s successful", "delete Pod %s in StatefulSet %s failed error: %v", reasonDeleted, reasonFailedDelete, err})
	case err == nil:
		r.emitChange(s, w, answer)
	case !write.IsOutdated(err): // else the next pass decides again
		r.emitRejected(s, w, err)
	}
}

// result is what an event says of a write: its texts, its reasons, and the error.
type result struct {
	succeeded, failed             string
	reasonSucceeded, reasonFailed string
	err                           error
}

func (r *Reconciler) emitResult(s *snapshot, w *workload.Write, e result) {
	if e.err != nil {
		r.api.Warningf(s.set, e.reasonFailed, e.failed, w.Object.GetName(), s.set.Name, e.err)
		return
	}
	r.api.Normalf(s.set, e.reasonSucceeded, e.succeeded, w.Object.GetName(), s.set.Name)
}

func (r *Reconciler) emitRejected(s *snapshot, w *workload.Write, err error) {
	_, isPod := w.Object.(*corev1.Pod)
	switch w.Action {
	case workload.ActionUpdate, workload.ActionUnready:
		r.api.Warningf(s.set, reasonFailedInPlace, "failed to update pod %s in-place(revision %s): %v", w.Object.GetName(), w.Revision, err)
	case workload.ActionFirst, workload.ActionPrepare:
		r.api.Warningf(s.set, reasonFailedUpdate, "update %s %s in StatefulSet %s failed error: %v", nounOf(isPod), w.Object.GetName(), s.set.Name, err)
	}
}

func nounOf(isPod bool) string {
	if isPod {
		return "Pod"
	}
	return "Claim"
}

func (r *Reconciler) emitChange(s *snapshot, w *workload.Write, answer write.Object) {
	switch pod, isPod := answer.(*corev1.Pod); {
	case w.Action == workload.ActionUpdate && revision.Match(answer.GetLabels()[kruise.PodRevisionLabelKey], w.Revision):
		r.api.Normalf(s.set, reasonUpdatedInPlace, "successfully update pod %s in-place(revision %s)", answer.GetName(), w.Revision)
	case w.Action == workload.ActionFirst && isPod:
		r.api.Normalf(s.set, reasonUpdated, "update Pod %s in StatefulSet %s successful", pod.Name, s.set.Name)
	}
}

// emitNotInPlace emits once that a pod cannot be updated: as long as the condition does not have the text.
func (r *Reconciler) emitNotInPlace(s *snapshot, f workload.Failure) {
	if !hasText(s, string(v1beta1.FailedUpdatePod), f.Err) {
		r.api.Warningf(s.set, reasonFailedInPlace, "failed to update pod %s in-place: %v", f.Object, errors.Unwrap(f.Err))
	}
}

// emitWaits emits what a pod that is to be created waits for, once for as long as that is the same.
func (r *Reconciler) emitWaits(s *snapshot, p *plan) {
	text := ""
	if len(p.waits) > 0 {
		text = p.waits[0].Text
	}
	if r.emitted.Changed(s.key(), text) && text != "" {
		r.api.Warningf(s.set, reasonFailedCreate, "create Pod %s in StatefulSet %s failed error: %s", p.waits[0].Object, s.set.Name, text)
	}
}

// emitInvalid emits what of the spec cannot be used, as long as the status does not have the text.
func (r *Reconciler) emitInvalid(s *snapshot, scaling, updating error) {
	emit := func(v verdict, err error) {
		if err != nil && !hasText(s, v.conditionType, err) {
			r.api.Warningf(s.set, reasonInvalidSpec, "%v", err)
		}
	}
	emit(creation(), scaling)
	emit(update(), updating)
}

// hasText reports whether the status has the text of a failure, as the cache shows the status or as it was written last.
func hasText(s *snapshot, conditionType string, err error) bool {
	if strings.Contains(s.known.failures[conditionType], err.Error()) {
		return true
	}
	old := conditionsOf(&s.set.Status).Find(conditionType)
	return old != nil && strings.Contains(old.Message, err.Error())
}

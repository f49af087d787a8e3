package cloneset

import (
	"errors"
	"fmt"
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
	reasonCreated         = "SuccessfulCreate"
	reasonFailedCreate    = "FailedCreate"
	reasonDeleted         = "SuccessfulDelete"
	reasonFailedDelete    = "FailedDelete"
	reasonFailedUpdate    = "FailedUpdate"
	reasonUpdatedInPlace  = "SuccessfulUpdatePodInPlace"
	reasonFailedInPlace   = "FailedUpdatePodInPlace"
	reasonRecreated       = "SuccessfulUpdatePodReCreate"
	reasonFailedRecreated = "FailedUpdatePodReCreate"
	reasonScaleUpLimited  = "ScaleUpLimited"
	reasonCreatedPullJob  = "CreatedImagePullJob"
	reasonFailedPullJob   = "FailedCreateImagePullJob"
	// reasonInvalidSpec is not among those of the reference, which emits none.
	reasonInvalidSpec = "InvalidSpec"
)

// emitWrite emits the event of a write, if it has one.
func (r *Reconciler) emitWrite(s *snapshot, w *workload.Write, answer write.Object, err error) {
	switch {
	case w.Action == workload.ActionCreate:
		r.emitCreate(s, w, err)
	case w.Verb == write.Delete:
		r.emitDelete(s, w, err)
	case err == nil:
		r.emitChange(s, w, answer)
	case !write.IsOutdated(err): // else the next pass decides again
		r.emitRejected(s, w, err)
	}
}

func (r *Reconciler) emitCreate(s *snapshot, w *workload.Write, err error) {
	if apierrors.IsAlreadyExists(err) && w.Object != write.Object(w.Pod) {
		return // the next pass observes the claim
	}
	if err != nil {
		r.api.Warningf(s.set, reasonFailedCreate, "failed to create pod: %v, pod: %s", fmt.Errorf("%s: %w", w, err), w.Pod.Name)
	} else if w.Object == w.Pod {
		r.api.Normalf(s.set, reasonCreated, "succeed to create pod %s", w.Pod.Name)
	}
}

func (r *Reconciler) emitPullJob(s *snapshot, job *v1beta1.ImagePullJob, err error) {
	if err != nil {
		r.api.Normalf(s.set, reasonFailedPullJob, "failed to create ImagePullJob %s: %v", job.Name, err)
		return
	}
	r.api.Normalf(s.set, reasonCreatedPullJob, "created ImagePullJob %s for image %s", job.Name, job.Spec.Image)
}

func (r *Reconciler) emitDelete(s *snapshot, w *workload.Write, err error) {
	_, isPod := w.Object.(*corev1.Pod)
	switch failed := err != nil && !apierrors.IsNotFound(err); {
	case isPod && failed:
		r.api.Warningf(s.set, reasonFailedDelete, "failed to delete pod %s: %v", w.Object.GetName(), err)
	case isPod:
		r.api.Normalf(s.set, reasonDeleted, "succeed to delete pod %s", w.Object.GetName())
	case failed:
		r.api.Warningf(s.set, reasonFailedDelete, "failed to clean up pvc %s: %v", w.Object.GetName(), err)
	}
}

func (r *Reconciler) emitChange(s *snapshot, w *workload.Write, answer write.Object) {
	switch {
	case w.Action == workload.ActionUpdate && revision.Match(answer.GetLabels()[kruise.PodRevisionLabelKey], w.Revision):
		r.api.Normalf(s.set, reasonUpdatedInPlace, "successfully update pod %s in-place(revision %s)", answer.GetName(), w.Revision)
	case w.Action == workload.ActionMark:
		r.api.Normalf(s.set, reasonRecreated, "successfully patch pod %s specified-delete for update(revision %s)", answer.GetName(), w.Revision)
	}
}

func (r *Reconciler) emitRejected(s *snapshot, w *workload.Write, err error) {
	name := w.Object.GetName()
	_, isPod := w.Object.(*corev1.Pod)
	switch {
	case !isPod:
		r.api.Warningf(s.set, reasonFailedUpdate, "failed to update pvc %s: %v", name, err)
	case w.Action == workload.ActionUpdate || w.Action == workload.ActionUnready:
		r.api.Warningf(s.set, reasonFailedInPlace, "failed to update pod %s in-place: %v", name, err)
	case w.Action == workload.ActionMark:
		r.api.Warningf(s.set, reasonFailedRecreated, "failed to patch pod specified-delete %s for update(revision %s): %v", name, w.Revision, err)
	}
}

// emitNotInPlace emits once that a pod cannot be updated: as long as the condition does not have the text.
func (r *Reconciler) emitNotInPlace(s *snapshot, f workload.Failure) {
	if !hasText(s, failedUpdate, f.Err) {
		r.api.Warningf(s.set, reasonFailedInPlace, "failed to update pod %s in-place: %v", f.Object, errors.Unwrap(f.Err))
	}
}

// emitLimit emits that creation waits for pods to become available; once, as long as nothing changes.
func (r *Reconciler) emitLimit(s *snapshot, p *plan) {
	d, status := p.pass.Result().Difference, &s.set.Status
	same := d.Create == 0 && status.ObservedGeneration == s.set.Generation && int(status.Replicas) == len(s.Active)
	text := ""
	if d.CreateMissing > d.Create {
		text = fmt.Sprintf("scaleUp is limited because of scaleStrategy.maxUnavailable: %d pods are to be created, %d may be now", d.CreateMissing, d.Create)
	}
	if r.limited.Changed(s.key(), text) && !same {
		r.api.Warningf(s.set, reasonScaleUpLimited, "%s", text)
	}
}

// emitWaits emits what a pod that is to be created waits for, once for as long as that is the same.
func (r *Reconciler) emitWaits(s *snapshot, p *plan) {
	text := ""
	if len(p.waits) > 0 {
		text = fmt.Sprintf("failed to create pod: %s, pod: %s", p.waits[0].Text, p.waits[0].Object)
	}
	none := text == "" && p.pass.Result().Difference.CreateMissing > 0 // pods are missing, and none is to be created now
	if !none && r.emitted.Changed(s.key(), text) {
		r.api.Warningf(s.set, reasonFailedCreate, "%s", text)
	}
}

// emitInvalid emits what of the spec cannot be used, as long as the status does not have the text.
func (r *Reconciler) emitInvalid(s *snapshot, scaling, updating error) {
	emit := func(conditionType string, err error) {
		if err != nil && !hasText(s, conditionType, err) {
			r.api.Warningf(s.set, reasonInvalidSpec, "%v", err)
		}
	}
	emit(failedScale, scaling)
	emit(failedUpdate, updating)
}

// hasText reports whether the status has the text of a failure, as the cache shows the status or as it was written last.
func hasText(s *snapshot, conditionType string, err error) bool {
	if strings.Contains(s.known.failures[conditionType], err.Error()) {
		return true
	}
	old := conditionsOf(&s.set.Status).Find(conditionType)
	return old != nil && strings.Contains(old.Message, err.Error())
}

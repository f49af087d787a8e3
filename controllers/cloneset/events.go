package cloneset

import (
	corev1 "k8s.io/api/core/v1"
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
	// reasonInvalidSpec is not among the reference's, which does not tell.
	reasonInvalidSpec = "InvalidSpec"
)

// tell records an event of the set. It comes after the write that it is about.
func (a *act) tell(eventType, reason, text string, args ...any) {
	if a.options.Recorder != nil {
		a.options.Recorder.Eventf(a.set, eventType, reason, text, args...)
	}
}

// tellLimit says that creation waits for pods to become available; once, as long as nothing changes.
func (a *act) tellLimit() {
	d := a.plan.scale.Difference
	if d.CreateMissing <= d.Create || a.toldLimit() {
		return
	}
	a.tell(corev1.EventTypeWarning, reasonScaleUpLimited,
		"scaleUp is limited because of scaleStrategy.maxUnavailable: %d pods are to be created, %d may be now", d.CreateMissing, d.Create)
}

// toldLimit says whether the last pass was limited as this one is: nothing is created, and the status says already what
// there is.
func (a *act) toldLimit() bool {
	status := &a.set.Status
	return a.plan.scale.Difference.Create == 0 && status.ObservedGeneration == a.set.Generation && int(status.Replicas) == len(a.pods)
}

package cloneset

import (
	"fmt"

	"github.com/kruisekit/kruisekit/internal/workloads"
)

// reasonScaleUpLimited is the reason of an event about creation that waits for pods to become available.
const reasonScaleUpLimited = "ScaleUpLimited"

// events are those of the writes, in the words of the reference.
func events() workloads.Events {
	event := func(reason, text string) workloads.Event { return workloads.Event{Reason: reason, Text: text} }
	notCreated := event("FailedCreate", "failed to create pod: %[6]s: %[4]v, pod: %[5]s")
	return workloads.Events{
		CreatePod: workloads.Outcome{
			Succeeded: event("SuccessfulCreate", "succeed to create pod %[1]s"), Failed: notCreated,
		},
		CreateClaim: workloads.Outcome{Failed: notCreated},
		DeletePod: workloads.Outcome{
			Succeeded: event("SuccessfulDelete", "succeed to delete pod %[1]s"),
			Failed:    event("FailedDelete", "failed to delete pod %[1]s: %[4]v"),
		},
		DeleteClaim: workloads.Outcome{Failed: event("FailedDelete", "failed to clean up pvc %[1]s: %[4]v")},
		UpdateInPlace: workloads.Outcome{
			Succeeded: event("SuccessfulUpdatePodInPlace", "successfully update pod %[1]s in-place(revision %[3]s)"),
			Failed:    event("FailedUpdatePodInPlace", "failed to update pod %[1]s in-place: %[4]v"),
		},
		MarkPod: workloads.Outcome{
			Succeeded: event("SuccessfulUpdatePodReCreate",
				"successfully patch pod %[1]s specified-delete for update(revision %[3]s)"),
			Failed: event("FailedUpdatePodReCreate",
				"failed to patch pod specified-delete %[1]s for update(revision %[3]s): %[4]v"),
		},
		ChangeClaim: workloads.Outcome{Failed: event("FailedUpdate", "failed to update pvc %[1]s: %[4]v")},
		Waits:       event("FailedCreate", "failed to create pod: %[4]v, pod: %[1]s"),
	}
}

// emitLimit emits that creation waits for pods to become available; once, as long as nothing changes.
func (r *Reconciler) emitLimit(s *snapshot, p *plan) {
	if !p.Runs(&s.Observation) {
		return
	}
	d, status := p.Pass.Result().Difference, &s.set.Status
	same := d.Create == 0 && status.ObservedGeneration == s.set.Generation && int(status.Replicas) == len(s.Active)
	text := ""
	if d.CreateMissing > d.Create {
		text = fmt.Sprintf(
			"scaleUp is limited because of scaleStrategy.maxUnavailable: %d pods are to be created, %d may be now",
			d.CreateMissing, d.Create)
	}
	if r.limited.Changed(s.Key(), text) && !same {
		r.kit.Warningf(s.set, reasonScaleUpLimited, "%s", text)
	}
}

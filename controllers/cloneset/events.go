package cloneset

import (
	"fmt"

	"github.com/kruisekit/kruisekit/internal/workloads"
)

// reasonScaleUpLimited is the reason of an event about creation that waits for pods to become available.
const reasonScaleUpLimited = "ScaleUpLimited"

// events are those of the writes, in the words of the reference.
func events() workloads.Events {
	notCreated := workloads.Event{Reason: "FailedCreate", Text: "failed to create pod: %[6]s: %[4]v, pod: %[5]s"}
	notChanged := workloads.Event{Reason: "FailedUpdate", Text: "failed to update pvc %[1]s: %[4]v"}
	return workloads.Events{
		CreatePod: workloads.Outcome{
			Succeeded: workloads.Event{Reason: "SuccessfulCreate", Text: "succeed to create pod %[1]s"}, Failed: notCreated,
		},
		CreateClaim: workloads.Outcome{Failed: notCreated},
		DeletePod: workloads.Outcome{
			Succeeded: workloads.Event{Reason: "SuccessfulDelete", Text: "succeed to delete pod %[1]s"},
			Failed:    workloads.Event{Reason: "FailedDelete", Text: "failed to delete pod %[1]s: %[4]v"},
		},
		DeleteClaim: workloads.Outcome{Failed: workloads.Event{
			Reason: "FailedDelete", Text: "failed to clean up pvc %[1]s: %[4]v",
		}},
		UpdateInPlace: workloads.Outcome{
			Succeeded: workloads.Event{
				Reason: "SuccessfulUpdatePodInPlace", Text: "successfully update pod %[1]s in-place(revision %[3]s)",
			},
			Failed: workloads.Event{Reason: "FailedUpdatePodInPlace", Text: "failed to update pod %[1]s in-place: %[4]v"},
		},
		MarkPod: workloads.Outcome{
			Succeeded: workloads.Event{
				Reason: "SuccessfulUpdatePodReCreate",
				Text:   "successfully patch pod %[1]s specified-delete for update(revision %[3]s)",
			},
			Failed: workloads.Event{
				Reason: "FailedUpdatePodReCreate",
				Text:   "failed to patch pod specified-delete %[1]s for update(revision %[3]s): %[4]v",
			},
		},
		ChangeClaim: workloads.Outcome{Failed: notChanged},
		Waits:       workloads.Event{Reason: "FailedCreate", Text: "failed to create pod: %[4]v, pod: %[1]s"},
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

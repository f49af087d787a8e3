package daemonset

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// reasonFailedPod is the reason of the event about a pod that has failed.
const reasonFailedPod = "FailedDaemonPod"

// events are those of the writes, in the words of the reference.
func events() workloads.Events {
	event := func(reason, text string) workloads.Event { return workloads.Event{Reason: reason, Text: text} }
	return workloads.Events{
		CreatePod: workloads.Outcome{
			Succeeded: event("SuccessfulCreate", "Created pod: %[1]s"), Failed: event("FailedCreate", "Error creating: %[4]v"),
		},
		DeletePod: workloads.Outcome{
			Succeeded: event("SuccessfulDelete", "Deleted pod: %[1]s"), Failed: event("FailedDelete", "Error deleting: %[4]v"),
		},
		Invalid: selectingAll,
		UpdateInPlace: workloads.Outcome{
			Succeeded: event("SuccessfulUpdatePodInPlace", "successfully update pod %[1]s in-place"),
			Failed:    event("FailedUpdatePodInPlace", "failed to update pod %[1]s in-place: %[4]v"),
		},
	}
}

// selectingAll is the event of a set whose selector is empty.
func selectingAll(o client.Object) workloads.Event {
	set, ok := o.(*v1beta1.DaemonSet)
	if !ok || set.Spec.Selector == nil || len(set.Spec.Selector.MatchLabels)+len(set.Spec.Selector.MatchExpressions) > 0 {
		return workloads.Event{}
	}
	return workloads.Event{
		Reason: "SelectingAll", Text: "This daemon set is selecting all pods. A non-empty selector is required.",
	}
}

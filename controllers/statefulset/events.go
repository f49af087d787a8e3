package statefulset

import "github.com/kruisekit/kruisekit/internal/workloads"

// events are those of the writes, in the words of the reference.
func events() workloads.Events {
	event := func(reason, text string) workloads.Event { return workloads.Event{Reason: reason, Text: text} }
	of := func(verb, noun, reason, done string) workloads.Outcome {
		text := verb + " " + noun + " %[1]s in StatefulSet %[2]s "
		return workloads.Outcome{
			Succeeded: event("Successful"+reason, text+done), Failed: event("Failed"+reason, text+"failed error: %[4]v"),
		}
	}
	changePod, changeClaim := of("update", "Pod", "Update", "successful"), of("update", "Claim", "Update", "success")
	changeClaim.Succeeded = workloads.Event{}
	return workloads.Events{
		CreatePod: of("create", "Pod", "Create", "successful"), CreateClaim: of("create", "Claim", "Create", "success"),
		DeletePod: of("delete", "Pod", "Delete", "successful"), ChangePod: changePod, ChangeClaim: changeClaim,
		UpdateInPlace: workloads.Outcome{
			Succeeded: event("SuccessfulUpdatePodInPlace", "successfully update pod %[1]s in-place(revision %[3]s)"),
			Failed:    event("FailedUpdatePodInPlace", "failed to update pod %[1]s in-place(revision %[3]s): %[4]v"),
		},
		Ahead:    of("resize", "Claim", "Resize", "success"),
		NotAhead: event("FailedUpdatePVC", "%[4]v"),
		Waits:    event("FailedCreate", "create Pod %[1]s in StatefulSet %[2]s failed error: %[4]v"),
	}
}

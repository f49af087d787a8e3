// Package workload plans one whole pass over the pods of a workload: what to create, delete and change now, in which order,
// and what to report.
//
// It joins packages scale, inplace, lifecycle and revision, so that a controller keeps only what is its own: the identity of
// its pods, its API, and the words of its status. A pass is a value. Plan computes it from an observation, without I/O; the
// caller sends its writes, and asks the pass what follows from each answer.
//
//	pass, err := workload.Plan(workload.Input{
//		Scale:     scale.Input{Now: now, Limits: scale.Limits{Replicas: 3, MaxUnavailable: 1}},
//		Instances: workload.Pods(pods),
//		Update:    workload.Revision{Name: "web-2", Data: newData}, // from revision.Encode
//		Current:   workload.Revision{Name: "web-1", Data: oldData},
//		Strategy:  workload.InPlaceIfPossible,
//		Build:     newPods,
//	})
//	...
//	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
//		for len(writes) > 0 {
//			w := writes[0]
//			pod, err := send(ctx, w) // see package driver/clientgo, or driver/runtimeclient
//			writes = append(writes[1:], pass.Answer(time.Now(), w, pod, err)...)
//		}
//	}
//	report(pass.Counts(), pass.Notes(), pass.Failures(), pass.RequeueAfter())
//
// # Order
//
//	first      the caller's own writes; pods that have finished are deleted
//	complete   groups get the members that they lack; what is left of a group without a leader is deleted
//	scale      instances are restored, created or deleted, as package scale plans
//	continue   updates that have begun go on; states move; new pods open their readiness gate
//	update     updates begin
//
// A pass that has changed the number of pods ends before it continues updates, and one that has moved a state ends before it
// begins updates: the next pass observes the result. The caller makes that pass when it observes a change of a pod, and at
// the latest after RequeueAfter.
//
// # Instances
//
// An instance is a pod, or a group of pods with a template per role. Instances are interchangeable, or have slots as those of
// a StatefulSet: see scale.Input. The pods of a group change together. All leave traffic, the leader changes first, the
// others follow once it is done, and all come back together. A change that is not possible in place recreates the group as
// a whole.
//
// Laws, beside those of package scale:
//   - Everything that must be remembered is in the pods. A pass that is sent in part, or twice, by a process that died, does no
//     harm: the next pass continues.
//   - No order of answers, whether success, conflict, refusal or timeout, keeps a pod out of traffic for good, or creates an
//     instance twice.
//   - Each failure stops only its own instance. Where an update is refused, another instance takes its turn.
//   - A write that was decided upon an older pod is no failure: the pass asks to be made again.
//   - The order of the instances does not matter, and neither they nor their pods are changed.
//
// When not to use it: for pods that are not replaced when they end, as those of a job.
package workload

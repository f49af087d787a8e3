// Package ephemeraljob reconciles EphemeralJobs: ephemeral containers that run to their end in running pods, in some
// pods at a time.
//
//	r, err := ephemeraljob.New(mgr.GetClient(), ephemeraljob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 10})
//
// Package ephemeral decides about the containers, and its pass adds them. The pass in plan.go has the writes of the job
// before and after these. There is no status.go: the status follows from the answers, in package ephemeral.
//
// # Costs
//
// One write for each pod, and one of the status for each turn of its containers: added, running, ended. Turns that a
// pass sees together cost one. An event of a pod reconciles the jobs for which the state of the pod changes. A pass
// without a change sends no request.
//
// # Refusals
//
// A pod for which the API server refuses the containers holds up no other pod. The reconciler tries the pod again after
// 5 seconds, and then less and less often, until every 5 minutes. The event CreateFailed and the condition JobFailed
// report the answer.
//
// # Deletion
//
// A job has no finalizer: nothing can remove an ephemeral container from a pod. The first pass over a job of the
// reference removes the finalizer that the reference has added, so that the deletion of the job waits for no manager.
//
// A job with a spec that cannot work gets the condition JobError and the event InvalidSpec.
//
// When not to use it: for containers that must be stopped. An ephemeral container ends by itself or with its pod.
package ephemeraljob

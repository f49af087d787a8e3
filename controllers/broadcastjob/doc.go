// Package broadcastjob reconciles BroadcastJobs: a pod that runs to its end, once, on every node that fits.
//
//	r, err := broadcastjob.New(mgr.GetClient(), broadcastjob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a job without defaults behaves as a defaulted one. Package broadcast decides about nodes and
// pods. The pass in plan.go has the writes of that decision, and what follows from their answers.
//
// A pass costs one write for each pod that it creates or deletes, and one for the status if the status changes. An
// event of a node reconciles the jobs for which the node begins or ends to fit, and those with a pod on the node that
// must leave. Heartbeats, labels that no job reads, and the progress of containers reconcile none.
//
// The name of a pod follows from its job and its node. A pod that an earlier process has created, and that the cache
// does not show yet, is found by its name.
//
// A job with a spec that cannot be used is left as it is, with an event (InvalidSpec), until the spec changes. A pod of
// another owner that has the name of a pod of the job is an event (FailedCreate); the other nodes go on.
//
// When not to use it: for pods that must run for as long as a node exists.
package broadcastjob

// Package dependents reads and writes what a workload controls: its pods, their volume claims, its revisions and its
// pull jobs.
//
//	r.dependents = dependents.New(api, dependents.Options{Claims: true, PullJobs: true})
//	...
//	err = r.dependents.Setup(ctx, mgr, controllerName)                 // in SetupWithManager
//	observed, err := r.dependents.Observe(ctx, set, selector)          // in observe.go
//	...
//	answer, err := runtimeclient.Send(ctx, c, &w.Write)                // in reconciler.go
//	r.dependents.Record(key, &w.Write, answer, err)
//	...
//	r.dependents.Forget(key)                                           // when the workload is gone
//
// Reads come from the cache, by owner, as the writes of the reconciler left the objects: a ledger per kind returns each
// write until the cache shows it. Missing reads, past the cache, the pods that an earlier process may have created a
// moment ago.
//
// All objects may be those of the cache, and are only read.
package dependents

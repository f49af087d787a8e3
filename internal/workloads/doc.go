// Package workloads is what the reconcilers of workloads share: the way of a pass from an observation to a report. A
// kind adds its spec, the identity of its pods, its status, and the texts of its events.
//
//	r.kit, err = workloads.New("cloneset", c, workloads.Options{
//		Kind: gvk, Scaling: "FailedScale", Updating: "FailedUpdate", Events: events,
//	})
//	...
//	bound, err := r.kit.Controller(ctx, mgr, workloads.Controller{...}) // in SetupWithManager
//
// One pass:
//
//	set, o, err := workloads.Read(ctx, r.kit, name, invalid) // with its defaults; nil where the workload is gone
//	err = r.kit.Observe(ctx, o, set.Spec.Selector)           // pods, revisions, claims, jobs, and orphans to adopt
//	p, err := o.Plan(workloads.Revision{Template: &set.Spec.Template, Current: set.Status.CurrentRevision})
//	in.SetRevisions(p.Resolution, p.Revision(), o.Revisions)
//	in.First = o.Ownership() // release and adopt pods
//	p.Pass, err = workload.Plan(in)
//	...
//	return workloads.Reconcile(ctx, r.kit, o, workloads.Steps[*plan]{...}) // the revision first, the status last
//
// A Kit holds what its reconciler remembers between passes, so that two reconcilers share nothing. Objects of an
// Observation may be those of the cache, and are only read.
//
// Conditions are those of a status, whatever Go type a kind has for them. Times and texts change only together with
// what they are about, so that a condition that stays the same costs no write. A condition that changes moves to the
// end of the list.
//
//	list := workloads.Conditions{...}                           // converted from the conditions of the kind
//	list.SetError("FailedScale", err, now)                      // removed without an error
//	after := workloads.Stall(&list, workloads.Stalling{...})    // why the workload stands still
//	...
//	b.For(object, builder.WithPredicates(workloads.IgnoreRewording("FailedScale", "FailedUpdate")))
//
// When not to use a Kit: for pods that are not replaced when they end, as those of a job.
package workloads

// Package advancedcronjob reconciles AdvancedCronJobs: Jobs, BroadcastJobs or ImageListPullJobs that are created on a
// schedule.
//
//	r, err := advancedcronjob.New(mgr.GetClient(), advancedcronjob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: an object without defaults behaves as a defaulted one. Package schedule decides when a child is
// due. One engine serves the three kinds of children: status.go has how the status of each reports its end.
//
// Writes: one for each child, one for each child that is deleted, and one patch of the status when the status changes.
// The name of a child belongs to its tick. So a tick has one child, also where the answer to the creation is lost. A
// process that has just started reads an object live before it creates its first child: the cache may lack the last
// child. An idle object costs a pass in an hour.
//
// An object that package validation rejects creates no children. The event InvalidSpec names the field. Its history and
// its status continue. Objects and children are read as untyped objects, as package stored explains. The template goes
// into the child as it is stored, with fields of later Kubernetes versions.
//
// In these the reconciler departs from the reference, which is known to fail there:
//   - status.lastScheduleTime does not decrease when children are gone, so that no run is repeated.
//   - More than 100 missed ticks stop nothing: the next one is due.
//   - Jobs wake their owner, and so do deletions. A tick that an active child forbids runs as soon as that child ends.
//   - Children are those of the UID of the owner, in whatever version the owner reference was written.
//   - At most 500 children of an object are active. More are not created, and the event TooManyActive reports it.
//   - A name of more than 52 characters has children: their names are cut, and have a hash.
//   - A time zone that cannot be loaded creates no children. The reference then uses that of its process.
//
// When not to use it: for Jobs alone a CronJob of Kubernetes does.
package advancedcronjob

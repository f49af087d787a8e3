// Package advancedcronjob reconciles AdvancedCronJobs: Jobs, BroadcastJobs or ImageListPullJobs that are created on a schedule.
//
//	r, err := advancedcronjob.New(mgr.GetClient(), advancedcronjob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: an object without defaults behaves as a defaulted one. When a child is due is decided by package schedule. One
// engine serves the three kinds, of which it must know how their status reports the end.
//
// Writes: one for each child, one for each child that is deleted, and one patch of the status whenever that changed. The name of a child
// belongs to its tick. So a tick has one child, also where the answer of the create is lost. A process that has just started reads an
// object live before it creates its first child: the cache may not have the last one yet. An idle object costs a pass in an hour.
//
// An object that the package validation rejects creates no children. An event, InvalidSpec, names the field. Its history and its status
// continue. Objects and children are read as untyped objects, as the package stored explains. The template goes into the child as it is
// stored, with fields of later Kubernetes versions.
//
// In these the reconciler departs from the reference, which is known to fail there:
//   - status.lastScheduleTime does not decrease when children are gone, so that no run is repeated.
//   - More than 100 missed ticks stop nothing: the latest is due.
//   - Jobs wake their owner, and so do deletions. A tick that an active child forbids runs as soon as that child ends.
//   - Children are those of the UID of the owner, in whatever version the owner reference was written.
//   - At most 500 children of an object are active. More are not created, and an event, TooManyActive, says so.
//   - A name of more than 52 characters has children: their names are cut, and have a hash.
//   - A time zone that cannot be loaded creates no children. The reference then uses that of its process.
//
// When not to use it: for Jobs alone a CronJob of Kubernetes does.
package advancedcronjob

// Package imagelistpulljob reconciles ImageListPullJobs: several images, pulled to nodes ahead of need. Each gets an ImagePullJob,
// which does the work; here they are made from the list's template, replaced when it changes, and summed up.
//
//	r, err := imagelistpulljob.New(mgr.GetClient(), imagelistpulljob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a list without defaults behaves as a defaulted one. All decisions are those of List in the package
// imagepull; here is what it reads and writes for them.
//
// Writes: one for each job, one for the label of the list with the hash of its template, and one patch of its status whenever
// that changed. The name of a job is a hash of what it is for. So no job is made twice, not even by a process that has just
// started and whose cache lags.
//
// A list that the package validation rejects makes no jobs, because the webhook would reject them as well. An event, InvalidSpec, names
// the field, and the list stays as it is until it changes. An image that is no reference is skipped with the same event: the other
// images are pulled, and the list does not complete. Lists and jobs are read as untyped objects, as the package stored explains, and
// an object that cannot be decoded is reported likewise.
//
// In these the reconciler departs from the reference, which is known to fail there:
//   - The status lists failed images in the order of the list, so that it does not change without a cause.
//   - The reconciler writes the status also when the creation of a job fails. It emits the event FailedCreate.
//   - The reconciler creates no jobs for a deadline that is less than the timeout of one attempt. It emits the event InvalidSpec.
//
// Jobs of a list must not leave before it does, or what they pulled is pulled again: Review in the package imagepull sees to that.
//
// When not to use it: for one image an ImagePullJob does.
package imagelistpulljob

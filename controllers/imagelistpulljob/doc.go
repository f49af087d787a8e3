// Package imagelistpulljob reconciles ImageListPullJobs: several images, pulled to nodes ahead of need. Each image
// gets an ImagePullJob. The reconciler creates these jobs from the template of the list, replaces them when the
// template changes, and sums up their statuses.
//
//	r, err := imagelistpulljob.New(mgr.GetClient(), imagelistpulljob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a list without defaults behaves as a defaulted one. List in package imagepull decides about
// the jobs. There is no
// watch.go: an event of a list or of a job reconciles the list.
//
// Writes: one for each job, one for the label of the list with the hash of its template, and one patch of the status
// when the status changes. The name of a job is a hash of its list, template and image. So no job is created twice,
// also not by a process that has just started and whose cache lags.
//
// A list that the package validation rejects makes no jobs, because the webhook would reject them as well. An event,
// InvalidSpec, names the field, and the list stays as it is until it changes. An image that is no reference is
// skipped with the same event: the other images are pulled, and the list does not complete. Lists and jobs are read
// as untyped objects, as the package stored explains, and an object that cannot be decoded is reported likewise.
//
// In these the reconciler departs from the reference, which is known to fail there:
//   - The status lists failed images in the order of the list, so that it does not change without a cause.
//   - The reconciler writes the status also when the creation of a job fails. It emits the event FailedCreate.
//   - The reconciler creates no jobs for a deadline that is less than the timeout of one attempt. It emits the event
//     InvalidSpec.
//
// A job of a list must stay for as long as the list, or nodes pull the image again: see Review in package imagepull.
//
// When not to use it: for one image, an ImagePullJob is enough.
package imagelistpulljob

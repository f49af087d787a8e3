// Package imagejobs returns what is invalid in ImagePullJobs, ImageListPullJobs and NodeImages.
//
//	faults := imagejobs.ValidatePullJob(job)
//
// The webhook of a kind rejects what the functions return, and the reconciler calls the same function for an object
// that was stored without the webhook, so that both agree.
//
// Laws:
//   - The functions are deterministic, change nothing, and accept every object that can be decoded.
//   - A fault names its field by the path in v1beta1. Its text is for users, its field and type are stable.
//   - The objects must have their defaults.
//
// When not to use it: to parse an image, which package imagepull does.
package imagejobs

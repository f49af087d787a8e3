// Package imagepull decides which images are pulled to which nodes before they are needed.
//
// So far it has one verb: [Ahead] makes the jobs that pull a revision's new images to the nodes of a workload's pods while
// these still run the old ones, so that an in-place update finds its images there.
//
//	for _, job := range imagepull.Ahead(imagepull.Rollout{Namespace: "shop", Owner: owner, Revision: to, From: old, To: new, Selector: selector}) {
//		// create it; one that exists already is as good
//	}
//
// When not to use it: a job pulls through the node daemon of this project or of OpenKruise. Without one on the nodes nothing
// happens. An operator that has no daemon can run pods with the new image instead.
//
// Laws: the same rollout gives the same jobs; no two of them pull the same image; none pulls what the old template had in the
// container of the same name; every name is one that the API server takes. Nothing that is passed in is changed.
package imagepull

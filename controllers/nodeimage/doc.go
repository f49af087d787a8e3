// Package nodeimage keeps one NodeImage for each node: the list of images that the node pulls ahead of need. Pull jobs add to
// it, the daemon of the node works it off; this reconciler makes it, clears it up, and speaks for nodes that are silent.
//
//	r, err := nodeimage.New(mgr.GetClient(), nodeimage.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook. All decisions are those of Maintain in the package imagepull; here is what it reads and writes for them.
//
// Writes: one to create a NodeImage, one patch for all that leaves its spec at a time, one patch of its status when pulls are
// given up. Nothing is written otherwise. The API server treats the lists in a NodeImage as atomic values. Server-side apply
// would not help, because managed fields do not separate two writers of one atomic list. Each patch therefore has only the
// changed fields, and the resourceVersion that the reconciler has read. A write of a daemon, a job or a user in between fails
// the patch, and the next pass reads it. The patch leaves other fields, such as firstSyncStatus, unchanged.
//
// Reads: nodes and NodeImages come from the cache, of pull jobs only their metadata. The API server is asked where something
// is about to be dropped or deleted because the cache lacks who asked for it: a cache may lag, and what is dropped is lost. That
// is one question for each node that is gone, and for each job of which the deletion was not watched. Secrets are neither
// listed nor watched. Of one that a NodeImage names without a mode the metadata are asked for, at most once in five minutes,
// and only in the namespace that daemons may read; references to other namespaces stay. The right to get Secrets there is not
// in the manager's generated role. Without it references to secrets that are gone stay, too, and nothing else is amiss.
//
// NodeImages are read as untyped objects, as the package stored explains: the API server takes times that Go does not. One
// that cannot be decoded still comes and goes with its node, and has its labels; its event, InvalidSpec, says what is wrong.
//
// In these the reconciler departs from the reference, which is known to fail there:
//   - Which NodeImages a deleted job concerns is looked up in an index of tag owners, and not remembered, so that a restart
//     loses nothing.
//   - How long a node may be silent is an option.
//   - A daemon's answer that comes while its pull is given up is not lost.
//   - An update of a node's heartbeat, or of a pull's progress, is not looked at.
//
// When not to use it: without a daemon on the nodes NodeImages do nothing.
package nodeimage

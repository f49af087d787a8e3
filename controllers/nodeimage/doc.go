// Package nodeimage keeps one NodeImage for each node: the list of images that the node pulls ahead of need. Pull jobs
// add images to the list, and the daemon of the node pulls them. This reconciler creates the NodeImage, drops what is
// not needed any more, and ends the pulls whose results a node does not report in time.
//
//	r, err := nodeimage.New(mgr.GetClient(), nodeimage.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook. Maintain in package imagepull decides. A pass first asks the API server for the owners and
// secrets that the cache lacks, then decides, and makes at most one write.
//
// Writes: one to create a NodeImage, one patch for all that leaves its spec at a time, one patch of its status when
// pulls are ended. The API server treats the lists in a NodeImage as atomic values. Server-side apply would not help,
// because managed fields do not separate two writers of one atomic list. Each patch therefore has only the changed
// fields, and the resourceVersion that the reconciler has read. A write of a daemon, a job or a user in between fails
// the patch, and the next pass reads it. The patch leaves other fields, such as firstSyncStatus, unchanged.
//
// Reads: nodes and NodeImages come from the cache, of pull jobs only their metadata. The API server is asked before a
// reference is dropped, or a NodeImage is deleted, because the cache lacks its owner: a cache may lag, and what is
// dropped is lost. That is one question for each node that is gone, and for each job of which the deletion was not
// watched. Secrets are neither listed nor watched. Of one that a NodeImage names without a mode the metadata are asked
// for, at most once in five minutes, and only in the namespace that daemons may read; references to other namespaces
// stay. The right to get Secrets there is not in the generated role of the manager. Without this right, references to
// secrets that are gone stay, too.
//
// NodeImages are read as untyped objects, as package stored explains: the API server accepts times that Go does not.
// One that cannot be decoded is still created and deleted with its node, and has the labels of its node. The event
// InvalidSpec reports what cannot be decoded.
//
// In these the reconciler departs from the reference, which is known to fail there:
//   - The NodeImages that a deleted job concerns come from an index of tag owners, so that a restart loses nothing.
//   - How long a node may be silent is an option.
//   - An answer of a daemon is not lost that comes while its pull is ended.
//   - An update of the heartbeat of a node, or of the progress of a pull, reconciles nothing.
//
// When not to use it: without a daemon on the nodes NodeImages do nothing.
package nodeimage

// Package imagepulljob reconciles ImagePullJobs: one image, pulled ahead of need to the nodes that a job selects, as
// many at once as it allows.
//
//	r, err := imagepulljob.New(mgr.GetClient(), imagepulljob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a job without defaults behaves as a defaulted one. Package imagepull decides which nodes are
// next, what is written to them, and the status. One reconcile copies the pull secrets, writes to the nodes that are
// next, each independent of the others, and then writes the status. The end of a job is a reconcile of its own.
//
// A job asks nodes by their NodeImages, one write for each node, and writes its status when it changes: once as the job
// begins, at most once for each node that ends, and once more for each time that it selects other nodes. The reconciler
// looks at a job again when a pull of its own has ended, or what it selects has changed; another image, another tag and
// the progress of a pull wake no job. Nodes pull in the order in which a CloneSet or a StatefulSet that owns the job
// updates its pods.
//
// # Pull secrets
//
// Nodes may read the secrets of one namespace only (Options.SecretNamespace), where the reconciler keeps one copy of
// each secret that jobs name, with type and docker configuration and nothing else. A copy lists the jobs under way that
// name its source. It is deleted when the last of them ends or is deleted, and at the next sweep where no manager saw
// that: jobs need no finalizer. When they end they lose the one that OpenKruise and older versions add. The reconciler
// needs no right to list all secrets: it gets those that jobs name, and watches the namespace of the copies alone,
// without which it does not start (config/pulljobs has the role). Each ten seconds (Options.SecretPeriod) it reads the
// secrets of jobs under way again, each once, and sweeps the copies.
//
// # What cannot be done
//
// A job with an image or a selector that cannot be read, with too many pull secrets or too long a sandboxConfig reports
// that in its status and in an event (InvalidSpec), and waits for another spec. Nodes that list too many images,
// NodeImages that the API server refuses, and a namespace that takes no copies are reported in the status; the other
// nodes go on. A secret that does not exist or cannot be used is an event; the pull goes without.
//
// When not to use it: without the node daemon of this project or of OpenKruise nothing pulls, and without the
// controller nodeimage there are no NodeImages.
package imagepulljob

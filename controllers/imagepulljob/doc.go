// Package imagepulljob reconciles ImagePullJobs: one image, pulled ahead of need to the nodes that a job selects, as many at
// once as it allows.
//
//	r, err := imagepulljob.New(mgr.GetClient(), imagepulljob.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a job without defaults behaves as a defaulted one. What decides is package imagepull; here is what it
// looks at, and what is written.
//
// A job tells nodes by their NodeImages, one write for each node, and writes its status when it changes. It is looked at
// again when a pull that it asked for has ended, or what it selects has changed; a change of another image or another tag
// wakes nobody, and neither does a pull's progress. Nodes pull in the order in which a CloneSet or a StatefulSet
// that made the job updates its pods.
//
// # Pull secrets
//
// Nodes may read the secrets of one namespace only (Options.SecretNamespace), where the reconciler keeps one copy of each
// secret that jobs name, with type and data and nothing else. A job that has secrets copied gets a finalizer, for the copies
// to be released; other jobs get none.
//
// The reconciler is not to see all secrets of a cluster. It gets those that jobs name, and watches the namespace
// of the copies alone, which it must be allowed to, or it does not start (config/pulljobs has the role). That a secret has changed, or has been made, it learns by reading it again: one read every ten seconds
// for each secret that a job under way names, however many jobs do. Options.SecretPeriod changes that, and with
// Options.WatchSecrets a watch of metadata takes its place, for those who let the manager list and watch Secrets anyway.
//
// # What cannot be done
//
// A job whose image or selector cannot be read says so in its status and in an event (InvalidSpec), and is left
// until it changes. Nodes that list too many images, NodeImages that the API server refuses, and a namespace that takes no
// copies are counted or named in the status; the other nodes go on. Secrets that do not exist are an event, and are pulled
// without.
//
// When not to use it: without the node daemon of this project or of OpenKruise nothing pulls. NodeImages are made by
// another controller.
package imagepulljob

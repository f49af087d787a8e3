// Package apiserver holds objects in memory as an API server does, and is a client of them. A forecast and a test run
// the production reconciler over it, one reconcile after the other, in milliseconds.
//
//	server := apiserver.New(scheme, clock)
//	_ = owned.Index(ctx, server, &corev1.Pod{})
//	r, err := cloneset.New(server, cloneset.Options{Now: clock, Recorder: server})
//	...
//	for server.Version() != last {
//		last = server.Version()
//		result, err := r.Reconcile(ctx, request)
//		server.ChangePods(kubelet) // what the nodes do
//	}
//
// It stores what the API server stores: a patch of an object leaves its status alone, a patch of the status leaves the
// rest alone, a name belongs to a UID, finalizers hold what is deleted, a patch that changes nothing makes no version.
// A write that the API server rejects or drops in silence is an error. There is neither validation nor defaulting of
// specs, no admission, no watch and no garbage collection: these need a real API server.
package apiserver

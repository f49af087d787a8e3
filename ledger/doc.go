// Package ledger lets a controller read its own writes.
//
// A cache lags behind the API server. A controller that decides on the cache alone creates a pod twice, or starts an
// update that it has started already: right after a write the cache still shows the state from before. The usual
// remedies are expectations, which stop the controller until an event arrives, and live reads, which cost a request per
// pass. A Ledger keeps the object that the API server returned for each write, and lays it over the cache's objects
// until the cache has caught up. The controller never waits, and no event handler takes part.
//
//	pods := ledger.New[*corev1.Pod](mgr.GetAPIReader(), time.Now) // a field of the reconciler
//	...
//	current, recheckAfter, err := pods.Overlay(ctx, owner, cached) // first, in every pass
//	...
//	return reconcile.Result{RequeueAfter: recheckAfter}, nil // or earlier
//
// What sends the writes records them: driver.Run with its option Ledgers, driver.Recording around any other sender, and
// runtimeclient.Recording for the client of controller-runtime. Where none of these sends, call Created, Patched,
// Deleted or Doubt with the answer.
//
// Laws:
//   - Overlay never returns an older state of an object than an earlier call for the same owner returned, nor an object
//     whose deletion was recorded, unless the cache shows the deletion in progress.
//   - Deleting returns an object whose deletion was recorded until the cache or a live read shows the deletion in
//     progress, or the end. No object is in the answers of both.
//   - An entry ends when the cache shows the write or a later one. An entry that the cache does not confirm within
//     [Patience] is confirmed by a live read, and again after each further Patience. A lost event cannot stop a
//     controller, and a cache that lags for longer is not believed earlier. The result of a live read counts, whatever
//     its version: versions go back where etcd is restored to an older version.
//   - Without such entries, Overlay costs no request. The live reads of one call are made one after the other.
//   - An entry is that of one object: writes never show in an object of another namespace or name, even where one owner
//     has objects of many namespaces, as a node or a cluster-scoped object does.
//   - A create of unknown outcome, as after a broken connection, is settled by a live read in the next Overlay. One
//     whose name the API server generates is not: give objects names where a second object is worse than a failed pass.
//   - An answer that is recorded twice counts once.
//
// A Ledger is safe for concurrent use. Its memory grows with the writes that the cache has not shown yet; call Forget
// when an owner is gone. A new process starts with an empty Ledger, so that before its first creation for an owner a
// controller should list the owner's objects live.
//
// When not to use it: for objects that the controller reads live anyway, and for writes guarded by a resource version
// whose conflict costs nothing. It does not show what other clients have written.
package ledger

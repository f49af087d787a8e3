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
// The sender records the writes: driver.Run with its option Ledgers, driver.Recording around any other sender, or
// runtimeclient.Recording for the client of controller-runtime. With another sender, call Created, Patched or Deleted
// after each successful write, and Doubt after a failed create.
//
// Laws:
//   - For one owner, Overlay never returns an older state of an object than before. After a recorded deletion it omits
//     the object, until the cache shows the deletionTimestamp.
//   - After a recorded deletion, Deleting returns the object until the cache or a live read shows the
//     deletionTimestamp, or that the object is gone. Overlay and Deleting never return the same object.
//   - The Ledger drops an entry when the cache shows the recorded write or a later one. If the cache does not show the
//     write within [Patience], Overlay reads the object live, and again after each further Patience. So a lost event
//     does not stop a controller. Until the cache or a live read shows otherwise, the entry overrides the cache. The
//     live read wins even with a lower resource version, as after a restore of etcd.
//   - Overlay sends no request if it has no entry to read live. It sends the live reads one after the other.
//   - Entries are keyed by namespace and name: a write never shows in another object, even if one owner, such as a
//     node, has objects in many namespaces.
//   - If the outcome of a create is unknown, as after a broken connection, the next Overlay reads the object live. With
//     generateName this is impossible: set metadata.name if a duplicate is worse than a failed reconcile.
//   - Recording an answer twice has no effect.
//
// A Ledger is safe for concurrent use. Its memory grows with the writes that the cache has not shown yet; call Forget
// when an owner is gone. A new process starts with an empty Ledger, so that before its first creation for an owner a
// controller should list the owner's objects live.
//
// When not to use it: for objects that the controller reads live anyway, and for writes guarded by a resource version
// whose conflict costs nothing. It does not show what other clients have written.
package ledger

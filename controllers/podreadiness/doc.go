// Package podreadiness makes the first word of pods that wait for KruisePodReady: it sets the condition to True once.
// From then on it belongs to those who take pods out of traffic; it is never touched here again.
//
//	r, err := podreadiness.New(mgr.GetClient(), podreadiness.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// Laws:
//   - A pod costs one write, to its status, and nothing is read past the cache.
//   - A condition that is there stays as it is, whatever it says, and also where the cache does not show it yet: the
//     write is a server-side apply, which fails where another writer has set the condition, and does not where the
//     kubelet has written something else.
//   - Pods without the readiness gate, and those that are being deleted, are left alone. So is Ready, which is the
//     kubelet's.
//
// When not to use it: where another controller sets the condition. Without any, pods with the gate never get ready.
package podreadiness

// Package daemonset reconciles Advanced DaemonSets: a pod on every node that fits, updated in place where possible,
// within a partition, a selector of nodes and a budget, or with a surge.
//
//	r, err := daemonset.New(mgr.GetClient(), daemonset.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a DaemonSet without defaults behaves as a defaulted one. Two reconcilers in one process do not
// share state.
//
// One pass observes everything into a snapshot (observe.go), decides what each node has with package placement, and
// plans the writes with package workload over a slot per node (plan.go, build.go for new pods). It sends the writes
// (reconciler.go), and reports (status.go, events.go). The plan reads nothing but the snapshot and the options.
//
// An event of a node wakes only the sets for which the node becomes another one (watch.go): eligible or not, selected
// for updates or not. Heartbeats and conditions wake none.
//
// Laws about new pods:
//   - A creation that is repeated has the same name until its pod is observed, whatever else changes: a lost answer or
//     a cache that lags gives no second pod. Other pods of a node have other names.
//   - A process reads the pods of a set past the cache before the first creation. Where a creation of an earlier
//     process reaches the API server even later, the next pass deletes the newer pod.
//   - Without a surge, a node gets its next pod when the one before is gone. A pod that the process has deleted
//     terminates until the cache shows more.
//
// A spec that no webhook has rejected is validated by package validation. A fault in the selector or the template
// leaves the pods as they are, with a condition and an event. A fault elsewhere is reported, and the default is used.
//
// When not to use it: for pods that run to completion.
package daemonset

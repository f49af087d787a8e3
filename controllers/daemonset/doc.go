// Package daemonset reconciles Advanced DaemonSets: a pod on every node that fits, updated in place where possible, within a partition, a
// selector of nodes and a budget, or with a surge.
//
//	r, err := daemonset.New(mgr.GetClient(), daemonset.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// It needs no webhook: a DaemonSet without defaults behaves as a defaulted one. Two reconcilers in one process do not share state.
//
// One pass observes everything into a snapshot (observe.go), decides what each node has with package placement, and plans the writes with
// package workload over a slot per node (plan.go, build.go for new pods). It sends the writes (reconciler.go), and reports (status.go,
// events.go). The plan reads nothing but the snapshot and the options.
//
// An event of a node wakes only the sets for which the node becomes another one (watch.go): eligible or not, selected for updates or not.
// Heartbeats and conditions wake none.
//
// The name of a new pod follows from its node and from the pods there, so that a creation that is repeated gives no second pod, whatever the
// cache shows. A name that a pod of another owner has is left out for ten minutes.
//
// A spec that no webhook has rejected is validated by package validation. A fault in the selector or the template leaves the pods as they are,
// with a condition and an event. A fault elsewhere is reported, and the default is used.
//
// When not to use it: for pods that run to completion.
package daemonset

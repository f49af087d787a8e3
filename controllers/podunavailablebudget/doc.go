// Package podunavailablebudget reconciles PodUnavailableBudgets: how many pods of each budget are available, how many
// more may become unavailable, and which pods a budget guards.
//
//	r, err := podunavailablebudget.New(mgr.GetClient(), podunavailablebudget.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// Package pub decides; this package reads and writes. Admission spends a budget in the same status: a write here tests
// the resource version, so that no admitted disruption is overwritten.
//
// # Costs
//
// A reconcile lists and counts the pods of its budget: 10,000 pods take some thirty milliseconds. Events of pods that
// change neither a status nor a stamp cause none, and those of the same moments cause one: the pause before a reconcile
// grows with the budgets of the namespace. A pod in a namespace without budgets costs one lookup in the cache.
//
// Metadata of Deployments, StatefulSets, ReplicaSets, CloneSets and Advanced StatefulSets is watched from the first
// budget on. The replicas of a workload are read from its scale subresource, once for each generation. Workloads of
// other kinds are read once a minute, and at most a hundred of them in one namespace.
//
// # What cannot be done
//
// A workload without a scale subresource has unknown replicas: the status has totalReplicas -1, an event reports it,
// and the pods are not protected unless the budget has protectTotalReplicas, or minAvailable as a number. A field that
// cannot be read, a budget without pods and a budget that can admit nothing are reported by events, too.
//
// When not to use it: without the webhooks that review disruptions, webhooks/disruption, a budget refuses nothing.
package podunavailablebudget

// Package disruption serves the validating admission webhook of pods that exist: it refuses deletions, evictions,
// updates in place and resizes that the PodUnavailableBudget of a pod has no room for, and records admitted deletions
// in WorkloadSpreads. It is a package of its own, because webhooks/pod answers for new pods alone: the two share
// neither requests nor lookups, and fail apart.
//
//	guard, err := disruption.NewGuard(mgr, disruption.GuardOptions{})
//	...
//	hook, err := disruption.New(guard, mgr.GetAPIReader(), disruption.Options{})
//	if err != nil {
//		return err
//	}
//	return hook.SetupWithManager(mgr)
//
// Laws:
//   - A refused eviction is 429, so that kubectl drain waits and tries again. Other refusals are 403. The message is
//     that of the reference.
//   - An update is judged by its effect on the pod, and by the budget of the pod before the update.
//   - An update that spends nothing, such as of a toleration, asks no budget.
//   - A refusal for another reason than the budget names the reason: 429 or 503 with a pause where a retry may succeed,
//     403 where the API server refused to store the record.
//   - A dry run is decided as any other request, and records nothing.
//   - The record in a WorkloadSpread comes after the decision of the budget, and never refuses a request. A request
//     that only a WorkloadSpread concerns has a path of its own, whose entries are ignored while no replica answers.
//   - A request of an exempt user is recorded in the budget, with or without room, and never refused. Such requests are
//     sent to the same path, so that the scheduler preempts during an outage, too.
//   - Every replica answers, and is ready once all budgets and WorkloadSpreads can be read.
//
// Laws of the Guard, which follows the budgets and commits what is admitted to their statuses:
//   - A pod of a namespace without a budget costs one map lookup.
//   - A disruption that is admitted and recorded was recorded in a status that no other writer had changed since it was
//     read.
//   - A disruption that spends costs at most one write. Those that arrive under one budget while a write of its status
//     is under way are decided together upon the answer of that write, and committed with one write, as package
//     internal/groupcommit does. Nothing is read live but after a conflict, which ends no review: the review is made
//     again with the live budget until its context ends.
//   - An own write counts until the cache has it, for a minute at most: versions go back where etcd is restored to an
//     older version.
//   - A disruption by an exempt user waits two seconds at most for its record, and is admitted without the record where
//     the write fails.
//   - A budget that is deleted meanwhile admits. One whose spec no status shows yet refuses with 429, so that clients
//     try again a second later.
//
// An Eviction carries neither the labels nor the status of its pod, which is therefore read live, once. internal/scope
// computes which requests API servers send here, and controllers/podscope writes that into the configuration.
//
// When not to use it: for evictions alone, a PodDisruptionBudget of Kubernetes needs no webhook.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets/status,verbs=patch
package disruption

// Package persistentpodstate reconciles PersistentPodStates: it records on which nodes the pods of a workload were
// ready, so that admission steers a new pod of the same name back there, and it generates the PersistentPodStates that
// workloads ask for by annotations.
//
//	r, err := persistentpodstate.New(mgr.GetClient(), persistentpodstate.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// Package podstate decides; this package reads and writes. The name of a request is that of a PersistentPodState, and
// of the workload that may ask for one.
//
// # Costs
//
// Events of pods are gathered for a second: pods that become ready together cost one patch of the status. A pass
// without a change sends no request. Pods are listed by their owner, and events find PersistentPodStates by an index of
// targets and nodes. StatefulSets of both groups are watched, and the kinds that the ConfigMap kruise-configuration
// lists. The leader reads the ConfigMap every ten seconds.
//
// A status is written for the version of the object that the pass has read. Where the cache lags behind, the API server
// refuses the write, and the pass comes again.
//
// # Deletions
//
// A pod is deleted only where the annotation kruisekit.dev/release-missing-topology-after asks for a release, and the
// pod waits for labels that no node has. A generated PersistentPodState is deleted only if the workload controls it,
// and a live read of the workload confirms that it does not ask for it. Both deletions test the UID.
//
// When not to use it: without the webhook of new pods, which steers them.
package persistentpodstate

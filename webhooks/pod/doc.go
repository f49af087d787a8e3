// Package pod serves the mutating admission webhook of new pods: one endpoint, and an ordered list of steps. A step is
// a pure function of another package, and the lookups that its constructor binds to it. The source of its name in
// internal/scope says which pods it concerns.
//
//	steps, err := pod.FromManager(mgr, pod.Options{})
//	...
//	hook, err := pod.New(steps, pod.Options{})
//	if err != nil {
//		return err
//	}
//	return hook.SetupWithManager(mgr)
//
// The steps in their order. Each works on the pod as the steps before have left it:
//
//  1. readiness: the gate KruisePodReady, on pods of controllers of the group apps.kruise.io, or on all.
//  2. spread: the subset of a WorkloadSpread; before the sets, because it may change labels that they select by.
//     A failure leaves the pod without a subset. The pod is recorded in its subset, also if a later step refuses it:
//     its place is free again 30 seconds later.
//  3. sidecars: injects SidecarSets.
//  4. launch: the order in which containers start; after the sets, so that injected containers are ordered as well.
//  5. budget: stamps the pod with its PodUnavailableBudget. A failure leaves the stamp out.
//  6. place: the node topology that a PersistentPodState has recorded of the pod of this name.
//  7. liveness: liveness probes that are not run by the kubelet; after the sets, because it covers their containers
//     too. Planned.
//  8. probes: with a gate, the probes of PodProbeMarkers, for the providers of virtual nodes. A failure leaves the
//     probes out.
//
// Laws:
//   - A pod that no step concerns is admitted without a patch. A patch has only what changed, so that unknown fields
//     stay as they were sent.
//   - A pod that was admitted once is not changed again, whichever entry of the configuration sends it.
//   - Nothing is read live for a pod: sets come from an index, namespaces and revisions from caches. The exceptions are
//     a namespace, a revision or the set of a provisional entry (internal/scope) that the caches lack, once
//     a second, and the owners of workloads that a WorkloadSpread may target, once.
//   - A dry run records nothing, and shows no subset.
//   - Random choices are a function of the request, and of what the pod got at an earlier call: the same request gives
//     the same pod.
//   - A rejection names the step, the set and the field: 422 for a set or a pod that is invalid, 503 or 504 with a
//     pause where a lookup failed. Never a bare 500.
//   - A set with the annotation kruisekit.dev/injection-failure-policy: Ignore never rejects a pod; the client gets a
//     warning instead. A set that does not select the pod never rejects it either, however invalid it is.
//   - Every replica answers, and is ready once the lookups of all steps can be read.
//
// internal/scope computes which pods API servers send here, and controllers/podscope writes that into the
// configuration.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets;podprobemarkers,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets;persistentpodstates,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,namespace=kruise-system,resources=controllerrevisions,verbs=get;list;watch
package pod

// Package pod serves the mutating admission webhook of new pods: one endpoint, an ordered list of steps, each of which is a
// pure function of another package plus the lookups that it needs.
//
//	lookups, err := pod.FromManager(mgr, pod.Options{})
//	...
//	hook, err := pod.New(lookups, pod.Options{})
//	if err != nil {
//		return err
//	}
//	return hook.SetupWithManager(mgr)
//
// The steps in their order, which matters, for each works on what the ones before it have made of the pod:
//
//  1. readiness: the gate KruisePodReady, on pods of controllers of our own group, or on all.
//  2. spread: the subset of a WorkloadSpread; before the sets, for it may change labels that they select by. To come.
//  3. sidecars: what SidecarSets add.
//  4. launch: the order in which containers start; after the sets, so that injected containers are ordered as well.
//  5. budget: the PodUnavailableBudget that a pod belongs to. To come.
//  6. place: the nodes that a PersistentPodState remembers. To come.
//  7. liveness: liveness probes that are run elsewhere; after the sets, for it is about their containers too. To come.
//  8. probes: PodProbeMarkers of pods on virtual nodes. To come.
//
// Laws:
//   - A pod that no step concerns is let through without a patch, and a patch has only what changed: fields that this program
//     does not know stay as they were sent.
//   - A pod that was through here once is changed no more, whichever entry of the configuration sends it again.
//   - Nothing is read from the API server for a pod: sets come from an index that grows with those that match, namespaces
//     and revisions from caches. The exceptions are a namespace or a revision so new that the cache does not have it, the latter
//     once a second where the API server has none either, and the set that a pod is sent for ahead of the caches (internal/scope/ahead).
//   - Chance is a function of the request, and of what the pod got at an earlier call: the same request gives the same pod.
//   - A refusal says what is wrong, of which set and where: 422 for a set or a pod that cannot be, 503 or 504 with a pause
//     where an answer was not to be had, and the step that was at it. Never a bare 500.
//   - A set that its owner allows to be missing (annotation kruisekit.dev/injection-failure-policy: Ignore) never is the
//     reason of a refusal; the pod gets a warning instead. Neither is one that surely does not select the pod, however broken.
//
// Which pods get here is another matter: internal/scope computes it, controllers/podscope writes it down.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,namespace=kruise-system,resources=controllerrevisions,verbs=get;list;watch
package pod

// Package sidecar decides what SidecarSets add to a new pod. It takes sets, revisions and pods as values, and returns
// the pod as it is to be created.
//
//   - [Parse] parses a set once, for all pods.
//   - [Select] returns the sets that a pod gets, and [Namespaces] where a set can match at all.
//   - [Resolve] returns a set as the pod gets it: the current spec, or a former revision. [Former], [Set.HoldsBack] and
//     [Restore] are its parts, for callers that keep restored sets.
//   - [Inject] adds containers, volumes, pull secrets and annotations.
//   - [Hash] and [HashWithoutImage] identify the version of a set that a pod has, and whether the pod lacks no more
//     than new images.
//
// A webhook for pods is little more than this:
//
//	// Once, when the object is added or changes; a set that is invalid in parts is kept.
//	set, err := sidecar.Parse(object)
//
//	selection, err := sidecar.Select(pod, namespace, sets)
//	for i, set := range selection.Sets {
//		if set.Pinned() {
//			revisions = ... // of the label kruise.io/sidecarset-name
//		}
//		selection.Sets[i], err = sidecar.Resolve(set, pod, revisions, rand.Uint32())
//	}
//	injection, err := sidecar.Inject(pod, selection.Sets, sidecar.Options{Now: now})
//	if injection.Pod != nil {
//		// admit that pod
//	}
//
// Admission answers with a JSON patch. PatchResponseFromRaw of controller-runtime's webhook/admission makes a patch
// from two texts: give it the pod as it was decoded, encoded again, and injection.Pod, encoded. With the raw object of
// the request, the patch would remove fields that the program's types do not know. webhooks/pod is such a webhook,
// ready for use.
//
// Laws:
//   - The same input gives the same output, and is not changed. Time and randomness are input.
//   - The order of the sets does not matter: they are sorted by name.
//   - An injected pod is not changed by another injection of the same sets. One exception: a JSON merge patch that
//     removes a key is written verbatim where there is no value, and removes the key the next time.
//   - The pod's own containers and their order are not changed, unless a set has a container of the same name, which a
//     note reports. Existing volumes and mounts are not changed.
//   - Injected containers have the variable IS_INJECTED, and the pod records its sets.
//   - Whatever the API server stores gives a pod, or an error with the set and the field, a [FieldError]. An invalid
//     set harms no pod that it certainly does not select.
//
// Departures from the reference: sets have an order also without [Options].SortContainers. The base of a canary is not
// resolved, so its revisions cannot fail the pod. A pinned revision must belong to the set. Names that the pod would
// have twice, and a hot upgrade without its empty image, are errors here; the API server would reject the pod later. A
// record of a set keeps its time as long as its other values do not change.
//
// When not to use it: for existing pods. Containers are injected only when pods are created.
package sidecar

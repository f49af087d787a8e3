// Package sidecar decides what SidecarSets add to a new pod. It takes sets, revisions and pods as values, and returns the pod
// as it is to be created.
//
//   - [Parse] reads a set once, for all pods to come.
//   - [Select] says which sets a pod gets, and [Namespaces] which ones need to be asked at all.
//   - [Resolve] gives a set as the pod gets it: as it is, or as a former revision has it. [Former], [Set.HoldsBack] and
//     [Restore] are its parts, for those who keep what was restored.
//   - [Inject] adds containers, volumes, pull secrets and annotations.
//   - [Hash] and [HashWithoutImage] tell whether a pod has what a set wants now, and whether new images are all that it
//     lacks.
//
// A webhook for pods is little more than this:
//
//	set, err := sidecar.Parse(object) // once, when the object comes or changes; a set that is broken in parts is kept
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
// Admission answers with a JSON patch. PatchResponseFromRaw of controller-runtime's webhook/admission makes one of two texts: give
// it the pod as it was decoded, encoded again, and injection.Pod, encoded. With the object as it came in the request, fields
// that the program's types do not know would be removed. webhooks/pod is such a webhook, ready for use.
//
// Laws:
//   - The same input gives the same output, and is not changed. Time and randomness are input.
//   - The order of the sets does not matter: they are taken by name.
//   - A pod that was injected is not injected again: nothing is to be done. One exception: a JSON merge patch
//     that removes something is written as it is where there is no value, and removes it the next time.
//   - The pod's own containers stay as they are and in their order, unless a set has one of the same name, which a note
//     tells. Volumes and mounts that are there already are not changed.
//   - What is added can be told from the rest: containers have IS_INJECTED, and the pod names its sets.
//   - Whatever the API server stores gives a pod, or an error that names the set and the field, a
//     [FieldError]. A set that is broken harms no pod that it surely does not select.
//
// Where the reference is left on purpose: sets have an order also without [Options].SortContainers. The base of a canary is
// not resolved, so its revisions cannot fail the pod. A pinned revision has to be one of the set. Names that would be in the pod
// twice, and a hot upgrade without its empty image, are errors that say so, where the API server would refuse the pod
// later. What is recorded of a set keeps its time as long as it says the same.
//
// When not to use it: pods that exist are not given containers; that is for their creation.
package sidecar

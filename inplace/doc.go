// Package inplace updates pods without creating them anew: it says whether a change of a template can be made in
// running pods, and leads each pod through it, one write at a time.
//
// There are two verbs. Diff compares two templates, once for any number of pods. Next looks at
// one pod and returns what to do next; it sends nothing itself.
//
//	change, err := inplace.Diff(oldTemplate, newTemplate, inplace.Policy{})
//	var blocked *inplace.BlockedError
//	if errors.As(err, &blocked) {
//		// these fields cannot change in a running pod: recreate it
//	}
//	action, err := inplace.Next(inplace.Update{Pod: pod, Change: change, Revision: "web-2"}, inplace.Policy{}, now)
//	if action.Verdict == inplace.Write {
//		patch, err := action.Write.Data()
//		pod, err = pods.Patch(ctx, pod.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, action.Write.Subresource)
//		// and look again, with the pod that came back
//	}
//
// A pod goes through these stages. All that has to be remembered is in the pod, so that any process can go on at any
// time, also one of the reference implementation: labels, annotations and conditions are the same.
//
//	    Next, to a revision                             Next, to continue
//	┌────────────────────────────┐  ┌──────────────────────────────────────────────────────────────┐
//	 not ready ─▶ resize ─▶ change ─▶ (grace period ─▶) wait for the node ─▶ next batch ... ─▶ ready
//
// An image update is three writes: not ready, change, ready. A change that restarts no container leaves the pod in traffic
// and is one write. Taking a pod out of traffic needs the readiness gate InPlaceUpdateReady in its spec.
// Containers start in the order of their launch priority: one batch after the other has become ready.
//
// What may change: images, cpu and memory, labels and annotations, and the environment fed from these, which needs a
// daemon on the node to restart the container; see Options.
//
// Laws:
//   - The pod is not changed, nor the templates; the same input gives the same output.
//   - Diff of a template and itself is empty, also when containers are reordered or defaults filled in.
//   - Every write brings the pod closer: applied, it is not asked for again.
//   - No wait is without a reason and a time. Anything that the API server stores gives an action or an error.
//   - A pod is put back into traffic only when its node has done everything that was written.
//   - Writes test what they were decided upon, and fail on a pod that another writer has led on meanwhile.
//
// When not to use it: for pods whose controller puts the template back (a Deployment's), and for changes that
// must begin with an empty container file system only once everything is drained: recreate these.
package inplace

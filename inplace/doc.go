// Package inplace updates pods without recreating them: it reports whether a change of a template can be made in
// running pods, and returns the writes of each pod, one at a time.
//
// There are two verbs. Diff compares two templates, once for any number of pods. Next looks at one pod and returns what
// to do next; it sends nothing itself. Package revision keeps the templates that pods were made from.
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
//		// and call Next again, with the pod that the API server returned
//	}
//
// A pod goes through these stages. All state is in the pod, so that any process can continue at any
// time, also one of the reference implementation: labels, annotations and conditions are the same.
//
//	    Next, to a revision                             Next, to continue
//	┌────────────────────────────┐  ┌──────────────────────────────────────────────────────────────┐
//	 not ready ─▶ resize ─▶ change ─▶ (grace period ─▶) wait for the node ─▶ next batch ... ─▶ ready
//
// Action.Step names the stage of a write, and Action.Restarts are the containers that restart because of the write. An
// image update is three writes: not ready, change, ready. A change that restarts no container leaves the pod in traffic
// and is one write. Taking a pod out of traffic needs the readiness gate InPlaceUpdateReady in its spec. Containers
// start in the order of their launch priority: one batch after the other has become ready.
//
// With Policy.Relabel, the revision label changes last, once the pod is ready, and costs another write. It is for
// workloads whose pods a built-in controller counts by that label; see RevisionOf.
//
// What may change: images, cpu and memory, labels and annotations, and the environment fed from these, which needs a
// daemon on the node to restart the container.
//
// An empty Change (Change.Empty) is for a revision that differs in nothing that a pod has. Next then writes the
// revision label at once, and the pod stays in traffic. No Change, nil, with a revision that the pod lacks is an error:
// the pod would count as updated without the change.
//
// Restarts of an update are no failures. UnplannedRestarts returns the others, for a restart policy.
//
// # The first readiness of a new pod
//
// A readiness gate is closed until its condition is True, also on a pod that was never updated. EnsureReadinessGate
// adds the gate InPlaceUpdateReady to a pod that is about to be created. Next opens the gate of a created pod once the
// kubelet has reported. So call Next for every pod in every pass: a pod for which no controller calls Next never
// becomes ready.
//
// Until then Next waits with the note NoteNotStarted: the pod has the gate, is Pending, and lacks the condition
// ContainersReady. There is nothing to do on a cluster: the kubelet writes the condition when it starts the pod, and
// that change causes the next pass. A pod that keeps the note is not scheduled, or its node is gone. A test without a
// kubelet must write ContainersReady, or a phase other than Pending. A pod without the gate never gets the note.
//
// # Reading one's own writes
//
// A controller that reads from a cache sees its writes late. Next is safe then: a write that was decided upon an old
// pod fails its tests, and write.IsOutdated reports that. But a pass that counts pods must not count old ones: it would
// take more pods out of traffic than the budget allows. Package ledger holds back a pass until the cache shows the
// writes of the pass before, or reads live where the cache stays behind.
//
// # What is installed
//
// Installation states what the cluster offers: a node daemon, resizes. Derive from one
// value the policies of all controllers that call Next for the same pods, so that they agree:
//
//	installed := inplace.Installation{EnvDaemon: true}
//	policy := installed.Policy()
//
// Laws:
//   - Neither the pod nor the templates are changed; the same input gives the same output.
//   - Diff of a template and itself is empty, also when containers are reordered or defaults filled in.
//   - Every write brings the pod closer: after it is applied, Next does not return it again.
//   - Every wait has a reason and a time. Anything that the API server stores gives an action or an error.
//   - A pod returns to traffic only when its node has done everything that was written.
//   - Writes test what they were decided upon, and fail on a pod whose update another writer has continued meanwhile.
//
// When not to use it: for pods whose controller restores the template, as a Deployment does, and for changes that
// must begin with an empty container file system after a drain: recreate these pods.
package inplace

// Package placement decides what each node has of a workload with a pod per node: which pods stay, which are surplus,
// which nodes get a pod, and which pods may be updated. Package workload makes the pass from the decision: an instance
// per node, whose slot is the name of the node.
//
//	placed := placement.Plan(placement.Input{
//		Now: now, Nodes: nodes, Pods: pods, Rule: eligible.Compile(&template.Spec, eligible.Options{Daemon: true}),
//		IsUpdated: func(pod *corev1.Pod) bool { return revision.Match(pod.Labels[label], update) },
//		Limits:    placement.Limits{MaxUnavailable: ptr.To(intstr.FromString("10%"))},
//	})
//	in.Scale.Slots = placed.Slots
//	in.Scale.Limits = scale.Limits{Partition: placed.Partition, MaxUnavailable: placed.MaxUnavailable}
//	for _, i := range placed.Instances {
//		in.Instances = append(in.Instances, workload.Instance{
//			Name: i.Name, Pods: ..., NotNow: i.NotNow, Recreate: i.Recreate,
//		})
//	}
//
// An instance whose name is no slot is surplus, and the pass deletes it. With a surge, a node that is being updated has
// a second slot until its new pod is available; the old pod is surplus then.
//
// Laws:
//   - The order of nodes and pods does not matter. Nothing of the input is changed.
//   - A node has one slot, and with a surge at most two. A node that is not eligible has none, but for a pod that may
//     stay there.
//   - No more surge slots are opened than MaxSurge, but for nodes whose pod is not available.
//   - No more slots are opened than Burst, surge slots included.
//   - A pod that does not become available counts against MaxUnavailable wherever it is, unless Loose is set.
//   - A failed pod is replaced less and less often: after a second, two, four, at most every fifteen minutes.
//   - A converged workload has a slot per node, each with one pod, and no note but for what the partition and the
//     selector keep.
//   - A thousand nodes take a few milliseconds.
//
// When not to use it: for pods that run to completion.
package placement

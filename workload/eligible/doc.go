// Package eligible decides which nodes the pods of a workload with a pod per node may be on: a DaemonSet, or a job that
// runs everywhere.
//
//	rule := eligible.Compile(&set.Spec.Template.Spec, eligible.Options{Daemon: true}) // once in a pass
//	for _, node := range nodes {
//		verdict := rule.Check(node)
//		switch {
//		case verdict.Run:
//			// the node gets a pod
//			eligible.Pin(&pod.Spec, node.Name)
//		case verdict.Stay:
//			// a pod of the node stays, and is not replaced
//		default:
//			// a pod of the node is deleted: verdict.Note(node.Name)
//		}
//	}
//
// A rule looks at the node name, the node selector, the required node affinity, and taints; on request also at cordons
// and at what a node can allocate. It is no scheduler: it ignores other pods, ports, and what is only preferred.
//
// Laws:
//   - A rule depends on nothing but the pod spec and the options, and a verdict on nothing but the rule and the node.
//   - Run implies Stay. A taint with the effect NoSchedule ends Run alone, and one with NoExecute ends both.
//   - Two nodes of one name that Changed does not distinguish get the same verdict from every rule.
//   - NodeOf returns the node that Pin has written.
//   - What cannot be parsed matches no node, and stops nothing.
//   - Nothing is parsed for a node: a thousand nodes take less than a millisecond.
//
// When not to use it: for the question whether a pod fits next to those that are on the node, which the scheduler
// answers.
package eligible

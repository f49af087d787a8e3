// Package nodepodprobe keeps one NodePodProbe for each node: the list of probes that the daemon of the node runs in its
// pods. It marks the pods with the results that the daemon reports.
//
//	r, err := nodepodprobe.New(mgr.GetClient(), nodepodprobe.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// All decisions are those of package podprobe. This reconciler is the only writer of the spec of NodePodProbes: it
// computes what a node is to probe from the pods of the node and from the markers that select them, and compares that
// with what there is. So a probe that is removed from its marker, a pod that is no longer selected and a marker that is
// deleted need no record of what was written before. The reconciler of PodProbeMarkers needs this one: it waits until
// no node has a probe of a marker that is deleted.
//
// Writes: one to create a NodePodProbe, one patch for all that changes in its spec at a time, and one patch for each
// pod whose condition, labels or annotations a result changes. Nothing is written otherwise. The patch of a pod has
// what changes alone, tests the UID, and goes to the status subresource, so that it needs no right to change pods. A
// condition of the kubelet or of a workload is never written.
//
// Reads: nodes, pods by their node, markers by their namespace and NodePodProbes come from the cache. The API server is
// asked before the NodePodProbe of a node that the cache lacks is deleted.
//
// A daemon is trusted with the pods of its own node alone: results for other pods are ignored.
//
// Rights: get, list, watch, create, patch and delete nodepodprobes; get, list and watch podprobemarkers, nodes and
// pods; patch pods/status; create and patch events.
//
// When not to use it: without a daemon on the nodes NodePodProbes do nothing.
package nodepodprobe

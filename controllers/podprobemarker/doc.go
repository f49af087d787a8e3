// Package podprobemarker keeps the status and the finalizer of PodProbeMarkers. It marks the pods of virtual nodes,
// whose providers run the probes themselves.
//
//	r, err := podprobemarker.New(mgr.GetClient(), podprobemarker.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// On other nodes the daemons run the probes: the reconciler of NodePodProbes (controllers/nodepodprobe) passes the
// probes to them, and marks the pods with their results. Both need each other: a marker that is deleted keeps its
// finalizer until no NodePodProbe has its probes.
//
// Writes: one patch to add the finalizer, one to remove it, one patch of the status when it changes, and one patch for
// each pod of a virtual node whose labels or annotations a condition changes. Nothing is written otherwise. Changes of
// pods within a second cost one pass.
//
// Reads: markers, pods by namespace, nodes and NodePodProbes come from the cache. Before a finalizer is removed,
// NodePodProbes are looked up in an index by their markers.
//
// Rights: get, list, watch and patch podprobemarkers; patch podprobemarkers/status; update podprobemarkers/finalizers;
// get, list and watch nodepodprobes, nodes and pods; patch pods/status; create and patch events.
//
// When not to use it: for probes of the kubelet.
package podprobemarker

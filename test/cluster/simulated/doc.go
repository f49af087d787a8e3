// Package simulated gives a real control plane nodes that exist only in the API: KWOK plays their kubelets by the
// stages in this package. Thousands of nodes and ten thousands of pods then fit a small machine, and nothing in a pod
// runs.
//
// Do not use it where the node itself is under test: there is no container runtime, no log, no exec and no probe; a
// container is what its status says. Use real kubelets (test/cluster) for those.
//
// What a pod sees is what a kubelet would do to its status:
//
//   - Soon after it is bound its containers run, with IPs, a digest per image, an ID per run of a container, and the
//     conditions of a kubelet. Ready honours the readiness gates and follows them.
//   - A changed image ends that one container and starts it again with another ID and a higher restart count; Ready is
//     False in between. Sidecars (init containers that restart always) do likewise; other init containers have
//     completed.
//   - A resize is first taken on (allocatedResources, PodResizeInProgress) and then done; a container whose resize
//     policy asks for it restarts.
//   - A deleted pod stays for its grace period, ends, and goes when it has no finalizers. One that runs nothing goes at
//     once.
//   - observedGeneration follows each of these. Changes of labels and annotations change nothing.
//
// The cluster runs until Stop:
//
//	c, err := simulated.Start(ctx, simulated.Config{Programs: programs, Dir: dir, Nodes: 1000})
//	...
//	defer c.Stop()
package simulated

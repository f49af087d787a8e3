// Package podprobe decides about PodProbeMarkers: what each node probes, what the results of a probe mean, and what a
// pod is marked with.
//
//	// For a manager:
//	content := podprobe.Desired(podprobe.Node{Pods: pods, Markers: markers, Asked: probes.Spec.PodProbes})
//	marking := podprobe.Mark(pod, podprobe.Outcomes(states, markers))
//	...
//	memory, probe := memory.Look(&asked, container, now) // for a node
//	memory = memory.Judge(&asked, result, now)
//	status := podprobe.Report(podprobe.Reporting{...})
//
// Laws:
//   - Desired is a function of the pods, the markers and the present content. The order of pods and markers does not
//     matter. Its own result changes nothing.
//   - Desired keeps the order of what stays, so that content which the reference wrote needs no write.
//   - The content of a node is bounded, and a namespace takes at most half of it.
//   - An applied Marking leaves nothing to mark. A marking changes no condition of the kubelet or of a workload.
//   - A marking that would change nothing has no write.
//   - A result counts only for the container that it was found in: a new container starts without a state and without a
//     count.
//   - Neither a marker nor a status that lacks or repeats a field makes a panic.
//
// When not to use it: for probes that the kubelet has, which need no daemon and restart containers or take pods out of
// service.
package podprobe

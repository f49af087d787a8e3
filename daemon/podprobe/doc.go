// Package podprobe runs the probes that the NodePodProbe of a node asks for, and reports their results in its status.
//
//	r, err := podprobe.New(mgr.GetClient(), node, runtimes.Default(), podprobe.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{})
//
// Commands run in their container, through the container runtime. TCP, HTTP and gRPC probes ask the address of the pod,
// and no other host. What a result means is decided by the package podprobe at the root.
//
// What holds:
//   - A probe never runs twice at the same time. It runs when its period has passed, and no sooner.
//   - A daemon that starts spreads the first runs over the periods, and goes on with the states that the status has. It
//     writes nothing for a probe whose result is the same.
//   - A limited number of probes run at the same time, fewer of them for one namespace. Of those that wait, a probe of
//     the namespace with the fewest under way runs first.
//   - One patch reports all results of a moment. A change of a state is reported at once, or a second after the patch
//     before. A change of messages alone waits for ten seconds after it. Without a change there is a patch at most
//     every ten minutes.
//   - A result is dropped if its probe or container changed while it was found.
//   - A probe that cannot be run, for example because the runtime is away, keeps its state.
//
// Rights: get, list and watch nodepodprobes, patch nodepodprobes/status, create and patch events.
//
// When not to use it: for probes of the kubelet.
package podprobe

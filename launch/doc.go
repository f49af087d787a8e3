// Package launch starts the containers of a pod one after the other: those of a higher priority first, and the next when
// they are ready. It is for agents and proxies that an application cannot start without.
//
// The kubelet does not start a container whose environment refers to a key that is not there. So each container gets a variable
// that refers to the key of its priority in a ConfigMap beside the pod, the barrier, and the keys are written one by one.
// Until its turn comes a container waits with the reason CreateContainerConfigError, which is as it should be.
//
// [Inject] is for the admission of a new pod. It writes the variables, if the pod asks for an order:
//
//	injection, faults := launch.Inject(pod, launch.Options{Suffix: rand.String(5)})
//	if len(faults) > 0 {
//		return apierrors.NewInvalid(kind, pod.Name, faults)
//	}
//	if injection.Pod != nil {
//		// admit that pod
//	}
//
// [Step] is for a controller. [Concerns] says at which events of a pod to ask it:
//
//	plan := launch.Step(launch.Input{Pod: pod, Barrier: configMap})
//	// delete plan.Remove, create plan.Create, add plan.Add, and mark the pod where plan.Complete says so
//
// Laws:
//   - The same input gives the same output, in whatever order the states of containers come. It is not changed.
//   - A pod that was injected is not injected again: nothing is to be done.
//   - A key is written for the first time only when each container of a higher priority is ready. Keys are never taken away:
//     what has started may start again.
//   - The pod is marked complete only when every key that it refers to is in the barrier, or is written before.
//   - A carried out plan gives one that writes nothing, until the pod changes.
//   - A barrier that is lost is made again, with the keys that were there: whatever of it a container waits for.
//   - What is in the environment and is no barrier, by its form or by the ConfigMap that it names, holds up nobody here.
//
// Where the reference is left on purpose: priorities are integers of 32 bits and literal values, and other ones are
// told by their field. A second injection replaces the first. A barrier that a former pod of the same name left is replaced
// and not used. A new barrier comes with the first keys in it, which is a write less. Static pods, whose containers no API
// object can hold up, are left alone.
//
// Two limits are inherited. A container that ends for good before it was ever ready holds up all others for ever. And the
// name of a pod that has only generateName is chosen at admission, since the barrier is called after it, so that the
// API server cannot choose another when it is taken.
//
// When not to use it: native sidecars, init containers with restartPolicy Always, do the same with nobody's help where they are
// known. And no order is kept between pods.
package launch

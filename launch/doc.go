// Package launch starts the containers of a pod one after the other: those of a higher priority first, and the next
// when they are ready. It is for agents and proxies that an application cannot start without.
//
// The kubelet does not start a container whose environment refers to a missing key. So each container gets a variable
// that refers to the key of its priority in a ConfigMap next to the pod, the barrier, and the keys are written one by
// one. Until then a container waits with the reason CreateContainerConfigError, which is expected.
//
// [Inject] is for the admission of a new pod. It adds the variables, if the pod asks for an order:
//
//	injection, faults := launch.Inject(pod, launch.Options{Suffix: rand.String(5)})
//	if len(faults) > 0 {
//		return apierrors.NewInvalid(kind, pod.Name, faults)
//	}
//	if injection.Pod != nil {
//		// admit that pod
//	}
//
// [Next] is for a controller. [Concerns] reports for which events of a pod to call it:
//
//	plan := launch.Next(launch.Input{Pod: pod, Barrier: configMap})
//	// delete plan.Remove, create plan.Create, add plan.Add, and mark the pod if plan.Complete
//
// Laws:
//   - The same input gives the same output, in any order of the states of containers. The input is not changed.
//   - A pod that was injected is not injected again.
//   - A key is written for the first time only when each container of a higher priority is ready. Keys are never
//     removed: a container that has started may restart.
//   - The pod is marked complete only when every key that it refers to is in the barrier, or is written before.
//   - After a plan was written, the next one writes nothing until the pod changes.
//   - A barrier that is lost is created again, with the keys that its containers have waited for.
//   - A variable that is no barrier, by its form or by the ConfigMap that it names, delays no container.
//
// Where it departs from the reference: priorities are integers of 32 bits and literal values, and others are faults of
// their field. A second injection replaces the first. The barrier of a former pod of the same name is replaced, and not
// used. A new barrier is created with its first keys, which is one write less. Static pods, whose containers cannot
// wait for an API object, are skipped.
//
// Two limits are those of the reference. A container that ends for good before it was ever ready stops all others for
// ever. And the name of a pod that has only generateName is chosen at admission, because the barrier is named after it,
// so that the API server cannot choose another one when it is taken.
//
// When not to use it: native sidecars, init containers with restartPolicy Always, do the same without a controller. And
// no order is kept between pods.
package launch

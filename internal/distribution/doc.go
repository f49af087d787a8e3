// Package distribution decides about ResourceDistributions: which namespaces get a copy of a Secret or a ConfigMap,
// what is to write in each of them, and what the status reports.
//
//	resource, err := distribution.Read(object.Spec.Resource.Raw)
//	targets, err := distribution.Select(object.Spec.Targets)
//	pass := distribution.Plan(distribution.Input{
//		Owner: owner, Resource: resource, Targets: targets,
//		Namespaces: all, Copies: copies, Known: known, Now: now,
//	})
//	for i, step := range pass.Steps { // in any order, also at the same time
//		for !step.Ended() {
//			live, err := send(step) // Create, Inspect, Update or Delete
//			step = pass.Answer(step, live, err)
//		}
//		pass.Steps[i] = step
//	}
//	status := pass.Status(object, now)
//
// A copy is compared by its normalised content: stringData is folded into data, a Secret without a type is Opaque, and
// empty maps are absent. Labels, annotations, finalizers and owners of the resource must be on the copy; those that
// other writers add stay.
//
// The content of a copy is read once. Plan takes from Known which version was read or written, and asks for another
// read where the copy has another version now. So metadata of the copies is all that a caller needs to watch.
//
// Laws:
//   - The same input gives the same output, and is not changed. Steps are in the order of namespaces; those that failed
//     before come last.
//   - An object that the distribution does not control is never written and never deleted. A creation is exclusive, and
//     an update or a deletion tests the UID and the version of the object it was decided upon.
//   - A namespace that is no target, or terminates, gets no copy. kube-system and kube-public are no targets, nor are
//     the namespaces that the caller reserves, whose copies stay as they are while they are selected.
//   - The failure of one namespace changes no step of another.
//   - The plan of a settled distribution has no steps.
//   - A copy that another writer changes again and again is restored at most [MaxRepairs] times within a [Window].
//   - Status depends on the results alone, not on their order. Names and texts in it are bounded.
//   - Whatever the API server stores gives a result.
//
// When not to use it: for a source object that lives in a namespace. The content is in the spec, and nothing else is
// read.
package distribution

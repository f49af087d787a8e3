// Package validation returns what is invalid in a whole spec, as functions of values: one function for each kind, and
// one for its updates.
//
//	if faults := validation.CloneSet(set); len(faults) > 0 {
//		return faults.ToAggregate()
//	}
//	faults := validation.CloneSetUpdate(set, stored)
//
// The webhook of a kind rejects what the functions return. A reconciler calls the same function for an object that was
// stored without the webhook, so that both agree. A rule that a verb of a primitive enforces itself stands in the
// primitive, and the function here calls it. No primitive imports this package, so that an embedder who validates
// nothing does not take it in.
//
// What depends on an API server (the fields of a pod template) or must be looked up (other objects) is for the
// webhooks.
//
// Laws:
//   - The functions are deterministic, change nothing, and accept every object that can be decoded.
//   - A fault names its field by the path in v1beta1, or in the only version of the kind. Its text is for users, its
//     field and type are stable.
//   - Defaults do not change the faults of AdvancedCronJob, CloneSet, StatefulSet, SidecarSet, BroadcastJob and
//     ContainerRecreateRequest. The other kinds must have their defaults.
//
// When not to use it: as a replacement for the API server, which validates metadata, schemas and pods.
package validation

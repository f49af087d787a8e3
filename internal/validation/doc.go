// Package validation returns what is invalid in the specs of workloads, jobs and NodeImages, and has the rules that
// several kinds share. EffectiveBroadcastJob and UnitedDeploymentUnusable say what a stored spec acts as that admission
// would reject.
//
//	if faults := validation.CloneSet(set); len(faults) > 0 {
//		return faults.ToAggregate()
//	}
//	faults := validation.CloneSetUpdate(set, stored)
//
// Rules of kinds that have a pure package are there, as those of SidecarSets.
//
// The webhook of a kind rejects what the functions return, and the reconciler calls the same function for an object
// that was stored without the webhook, so that both agree.
//
// Laws:
//   - The functions are deterministic, change nothing, and accept every object that can be decoded.
//   - A fault names its field by the path in v1beta1. Its text is for users, its field and type are stable.
//   - Defaults do not change the faults.
//
// When not to use it: as a replacement for the API server, which validates metadata, schemas and pods.
package validation

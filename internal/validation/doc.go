// Package validation returns what is invalid in the specs of workloads that manage pods, and has the rules that several
// kinds share.
//
//	if faults := validation.CloneSet(set); len(faults) > 0 {
//		return faults.ToAggregate()
//	}
//	faults := validation.CloneSetUpdate(set, stored)
//
// The rules of the other kinds are in the packages of these kinds.
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

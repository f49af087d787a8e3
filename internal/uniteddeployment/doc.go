// Package uniteddeployment returns what is invalid in UnitedDeployments.
//
//	faults := uniteddeployment.Validate(u)
//	faults := uniteddeployment.ValidateUpdate(u, stored)
//
// The webhook of a kind rejects what the functions return, and the reconciler calls the same function for an object
// that was stored without the webhook, so that both agree.
//
// Laws:
//   - The functions are deterministic, change nothing, and accept every object that can be decoded.
//   - A fault names its field by the path in v1beta1. Its text is for users, its field and type are stable.
//
// When not to use it: for pod templates, which the API server validates.
package uniteddeployment

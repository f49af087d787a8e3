// Package distribution reads the specs of ResourceDistributions: which namespaces are targets, what each copy has, and
// what is invalid.
//
//	targets, err := distribution.Select(object.Spec.Targets, reserved)
//	copied, err := distribution.Read(object.Spec.Resource.Raw)
//	faults := distribution.Validate(object, reserved)
//
// Laws:
//   - kube-system and kube-public are no targets, nor is the reserved namespace.
//   - Read normalizes: resources that API servers store alike have the same content, however they are written.
//   - What Validate finds valid can be read, and API servers accept it. No text contains a value of a Secret.
package distribution

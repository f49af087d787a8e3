// Package v1beta1 holds the kinds of the group policy.kruise.io in their storage version.
//
// It is the hub of conversion: the kinds of v1alpha1 convert to these and back without loss.
//
// +kubebuilder:object:generate=true
// +groupName=policy.kruise.io
package v1beta1

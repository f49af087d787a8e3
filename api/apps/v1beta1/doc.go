// Package v1beta1 holds the kinds of the group apps.kruise.io in their storage version.
//
// It is the hub of conversion: the kinds of v1alpha1 convert to these and back without loss.
// Each kind has one file with its types, and where it has defaults a method Default that fills them
// as the admission webhook does, so that a controller works the same without any webhook installed.
// The pod templates inside are not defaulted here; the API server does that.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1

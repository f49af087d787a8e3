// Package v1alpha1 holds the kinds of the group policy.kruise.io in their older version.
//
// A type that is equal in both versions is an alias of the one in v1beta1, so what stands here is what differs.
// Each kind converts with ConvertTo and ConvertFrom, without loss: what the other version cannot hold travels in
// the annotation kruise.ConversionDataKey.
//
// New code uses v1beta1.
//
// +kubebuilder:object:generate=true
// +groupName=policy.kruise.io
package v1alpha1

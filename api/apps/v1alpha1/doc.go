// Package v1alpha1 holds the kinds of the group apps.kruise.io in their older version, and the kinds that
// have no newer one (EphemeralJob, PodProbeMarker, NodePodProbe).
//
// A type that is equal in both versions is an alias of the one in v1beta1, so what stands here is what differs.
// Each kind that has a v1beta1 converts with ConvertTo and ConvertFrom, without loss: what the other
// version cannot hold travels in the annotation kruise.ConversionDataKey.
//
// New code uses v1beta1 where a kind has it.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1

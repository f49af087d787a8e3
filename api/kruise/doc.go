// Package kruise holds what every kind of the API shares: the keys written on pods (labels, annotations,
// readiness gates, condition types, environment variables) and the small structs that several specs embed
// (lifecycle hooks, update order, in-place settings).
//
// A key is part of the wire contract: pods of a running cluster carry it, so its value never changes.
// Keys of one kind's own objects live next to that kind.
//
// +kubebuilder:object:generate=true
package kruise

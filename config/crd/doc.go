// Package crd gives the CustomResourceDefinitions of all kinds as Go values, for tests and for programs that
// install them themselves. With kubectl, the two ways to install are the directories beside this file:
//
//   - both: v1alpha1 and v1beta1, converted by the manager's webhook;
//   - v1beta1: the storage version alone, without any webhook, for a platform that imports a few reconcilers.
//     (PodProbeMarker, NodePodProbe and EphemeralJob have only v1alpha1, and keep it.)
//
// The files in bases are generated from the types; see `make generate`.
package crd

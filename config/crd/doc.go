// Package crd returns the CustomResourceDefinitions of all kinds as Go values, for tests and for programs that
// install them themselves. With kubectl, the two ways to install are the directories next to this file:
//
//   - both: v1alpha1 and v1beta1, converted by the manager's webhook. The API server itself converts ImagePullJob,
//     ImageListPullJob and NodeImage, whose versions are equal, so that they can be read while no manager runs;
//   - v1beta1: the storage version alone, without any webhook, for a platform that imports a few reconcilers.
//     (PodProbeMarker, NodePodProbe and EphemeralJob have only v1alpha1, and keep it.) Where objects are stored as
//     v1alpha1, package storage rewrites them first: the API server rejects these CRDs before.
//
// Where an earlier installation had these three converted by webhook, a client-side apply removes the webhook. A
// server-side apply cannot remove what another writer owns, and is rejected until they are patched once, each with
//
//	kubectl patch crd NAME --type=json -p '[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]'
//
// OpenKruise installs them without a webhook.
//
// The files in bases are generated from the types; see `make generate`.
package crd

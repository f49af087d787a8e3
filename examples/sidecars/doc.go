// Package sidecars shows sidecars alone in a controller-runtime manager of your own: pods get them at their creation,
// and new images of them while they run. It holds no code but its example, for you to copy; a test runs that next to an
// API server.
//
// Four parts belong together. webhooks/pod adds sidecars to new pods, and controllers/podscope writes for API servers
// which pods to send there; webhooks/sidecarset completes and judges SidecarSets, and controllers/sidecarset brings new
// images to running pods. The webhooks answer on all replicas, the reconcilers work on the leader.
//
// What must be there:
//
//   - The CRD: config/crd/v1beta1 alone needs no conversion webhook. It must be installed before the manager starts:
//     the reconciler of SidecarSets does not start later.
//   - One namespace, the manager's own, in the Options of all four, where each defaults to kruise-system. Revisions of
//     sets are kept there by one part and looked up by two others, and its pods are never sent to the webhook: the
//     manager must be able to start without itself. The namespace must exist.
//   - The configuration object that podscope fills: a MutatingWebhookConfiguration without entries, called
//     kruise-pods-webhook-configuration (podscope.Options.Configuration), and one for provisional entries.
//     config/webhook/pods.yaml has both. Where one is missing, podscope creates it, if it may.
//   - The main MutatingWebhookConfiguration, called kruise-mutating-webhook-configuration
//     (podscope.Options.MainConfiguration), with an entry that names the same service in the same namespace, and has a
//     CA: entries of pods get theirs from it, and none is written before. That of SidecarSets will do: it and its
//     validating counterpart are msidecarset.kb.io and vsidecarset.kb.io in config/webhook/manifests.yaml.
//   - The service, called kruise-webhook-service (podscope.Options.Service), with port 443, that leads to the manager's
//     webhook server, and a certificate for that server. webhooks/certificates makes one, renews it, and writes the CA
//     into the configurations, as examples/kruise-manager has it; cert-manager can do the same.
//   - RBAC: what the +kubebuilder:rbac markers in the four packages say. controller-gen reads them there, and
//     config/rbac/role.yaml is what it makes of those of all packages. A manager with leader election needs leases
//     besides.
//
// A set whose admission has been answered may select pods that come before podscope has written its entry, and these go
// without sidecars: wait for the entry, or a moment, before you create them. sidecarset.Options.Cover is where
// something of yours can close that gap; the whole list of package webhooks has it closed, and is the simpler choice
// where it matters.
package sidecars

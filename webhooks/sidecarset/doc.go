// Package sidecarset serves the admission webhooks of SidecarSet: one that fills in defaults and hashes, one that refuses what
// cannot work. Both take v1alpha1 and v1beta1. An object is judged once, as v1beta1, and the paths of its faults are told in
// the version of the request.
//
// Laws:
//   - The patch of defaults only adds, and replaces empty values. What the user wrote, fields that this program does not
//     know included, stays as it was written. The two hashes alone are replaced, by what they are.
//   - The hash of a stored set changes only with what the user changes: a container that was defaulted in its time gets no
//     default that the API server has learned since, nor one that OpenKruise does not fill in.
//   - Containers and volumes are defaulted and judged by the API server, when they are new or have changed. An update of
//     anything else costs no call for them.
//   - A field of containers and volumes that the API server does not know is kept, and told by a warning when they are new or
//     have changed. Only a set that has one costs a call more.
//   - An update is not refused for a fault that the stored object has already, but for one of containers and volumes when
//     these are changed. The fault is a warning then. A set that is being deleted can always be updated.
//   - Two sets that have a name in common are let in if, and only if, no pod can be selected by both. A refusal tells the
//     labels of such a pod.
//   - A set that is let in is covered first, where Options.Cover says how: its pods are sent to their webhook when the writer of
//     the set has the answer. Nothing that goes wrong with that keeps a set out.
//   - No input makes a handler panic.
//
// The rules that need no API server, and the warnings, are in the package validation. Some of them are also in config/webhook/sidecarset-policy.yaml, which API servers mind by themselves. It is
// for clusters that set these webhooks to Ignore or leave them out, and is applied by hand:
//
//	kubectl apply -f config/webhook/sidecarset-policy.yaml
//
// No kustomization lists it. As deployed the webhooks fail closed, so that nothing gets past their rules while they are away.
//
// Where the reference is left on purpose: refusals are 422, not 500, and their paths are those of the fields that are
// wrong. The canary of a set does not keep it from being changed. A hot upgrade without its empty image, names that hot
// upgrades would make twice or too long, a custom version that is no label, and a formula that fails for all values are
// refused; a formula that fails only for small values is not. A revision must be one of the set. An upgrade type that nobody
// knows can be changed into one that is known.
//
// In use:
//
//	webhooks, err := sidecarset.New(client, mgr.GetCache(), sidecarset.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-sidecarset,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=sidecarsets,verbs=create;update,versions=v1alpha1;v1beta1,name=msidecarset.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-sidecarset,mutating=false,failurePolicy=fail,sideEffects=NoneOnDryRun,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=sidecarsets,verbs=create;update,versions=v1alpha1;v1beta1,name=vsidecarset.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=configmaps,resourceNames=kruise-configuration,verbs=get
// +kubebuilder:rbac:groups=apps,namespace=kruise-system,resources=controllerrevisions,verbs=get;list
package sidecarset

// Package sidecarset serves the admission webhooks of SidecarSet: a mutating one, which fills in defaults and hashes,
// and a validating one. Both accept v1alpha1 and v1beta1. An object is validated once, as v1beta1, and the paths of its
// faults are those of the version of the request.
//
// Laws:
//   - The patch of defaults only adds, and replaces empty values. What the user wrote, unknown fields included, is not
//     changed. Only the two hashes are replaced.
//   - The hash of a stored set changes only with what the user changes: a container that was defaulted earlier gets no
//     default that the API server has added since, nor one that OpenKruise does not fill in.
//   - The API server defaults and validates containers and volumes when they are new or have changed. An update of
//     anything else costs no call for them. Where a rule of the cluster refuses the dry run, the set is admitted with a
//     warning.
//   - An unknown field of containers and volumes is kept, and a warning reports it when they are new or have changed.
//     Only a set with such a field costs another call.
//   - An update is not rejected for a fault that the stored object has already, unless the fault is in containers and
//     volumes that change. The fault is a warning then. A set that is being deleted can always be updated.
//   - Two sets with a name in common are admitted if, and only if, no pod can be selected by both. A rejection contains
//     the labels of such a pod.
//   - An admitted set is covered first, if Options.Cover is given: API servers send its pods to their webhook when the
//     writer of the set has the answer. No failure of that rejects a set.
//   - No input makes a handler panic.
//
// The rules that need no API server, and the warnings, are in package sidecarsets, which the reconciler uses as well.
// Some of them are also in config/webhook/sidecarset-policy.yaml, which API servers apply without a webhook. It is for
// clusters that set these webhooks to Ignore or leave them out:
//
//	kubectl apply -f config/webhook/sidecarset-policy.yaml
//
// No kustomization contains it. As deployed, the webhooks fail closed, so that no set is stored without their rules.
//
// Departures from the reference: rejections are 422, not 500, and their paths are those of the invalid fields. The
// canary of a set does not prevent changes of the set. These are rejected: a hot upgrade without its empty image, names
// that hot upgrades would use twice or that are too long, a custom version that is no label value, and a formula that
// fails for all values. A formula that fails only for small values is admitted. A pinned revision must belong to the
// set. An unknown upgrade type can be changed into a known one.
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

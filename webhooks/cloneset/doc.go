// Package cloneset serves the admission webhooks of CloneSet: one that fills in defaults, one that refuses what cannot
// work. Both take v1alpha1 and v1beta1. An object is validated once, as v1beta1, and errors have paths in the
// version of the request.
//
// The laws are those of package templated, which reads the requests. Beside the call about a template, an update costs a call for pods that
// it names for deletion.
//
// In v1alpha1, OnDelete is refused where it is new, in a new set or in place of another type. The reference refuses it in that
// version always, and clients may count on it; but a set that has it, from v1beta1, must stay open to clients of v1alpha1
// that change something else, and gives them a warning.
//
// The rules that need no API server are in the package validation. Those that CEL can express are also in
// config/webhook/cloneset-policy.yaml, which API servers enforce without a webhook. It is for clusters that set these webhooks to Ignore or
// leave them out, and is applied by hand:
//
//	kubectl apply -f config/webhook/cloneset-policy.yaml
//
// No kustomization lists it. As deployed the webhooks fail closed, so that nothing gets past their rules while they are away.
//
// In use:
//
//	webhooks, err := cloneset.New(client, cloneset.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The client should read without a cache, as one of client.New does: from a cache, the few pods that are read by name
// start an informer on all pods.
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-cloneset,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=clonesets,verbs=create;update,versions=v1alpha1;v1beta1,name=mcloneset.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-cloneset,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=clonesets,verbs=create;update,versions=v1alpha1;v1beta1,name=vcloneset.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
package cloneset

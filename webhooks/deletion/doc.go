// Package deletion refuses deletions of objects that the label policy.kruise.io/delete-protection protects. Package
// protection decides; this package reads what the decision depends on, and answers API servers.
//
// In use:
//
//	guard, err := deletion.New(reader, deletion.Options{})
//	if err != nil {
//		return err
//	}
//	err = guard.SetupWithManager(mgr)
//
// Laws:
//   - Only labelled objects wait for an answer: the patches of config/webhook select them. A deletion without an answer
//     fails.
//   - A review costs no request to the API server unless the answer depends on it: one read of the namespace before a
//     refusal, and for the value Cascading of a namespace or a definition one read of the object and one page of each
//     list.
//   - A count is of the live object that carries the label under the UID of the review. Another review learns no
//     number.
//   - Metrics and records of refusals are bounded, whatever a client sends. A dry run leaves neither.
//
// The policies of config/protection enforce the rules that need nothing but the object, also while no replica runs.
//
// Do not use it to keep pods available: it judges no pods.
//
// +kubebuilder:webhook:path=/validate-namespace,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups="",resources=namespaces,verbs=delete,versions=v1,name=vnamespace.kb.io
// +kubebuilder:webhook:path=/validate-service,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups="",resources=services,verbs=delete,versions=v1,name=vservice.kb.io
// +kubebuilder:webhook:path=/validate-customresourcedefinition,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=delete,versions=v1;v1beta1,name=vcustomresourcedefinition.kb.io
// +kubebuilder:webhook:path=/validate-apps-deployment,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps,resources=deployments,verbs=delete,versions=v1,name=vbuiltindeployment.kb.io
// +kubebuilder:webhook:path=/validate-apps-replicaset,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps,resources=replicasets,verbs=delete,versions=v1,name=vbuiltinreplicaset.kb.io
// +kubebuilder:webhook:path=/validate-apps-statefulset,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps,resources=statefulsets,verbs=delete,versions=v1,name=vbuiltinstatefulset.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-cloneset,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=clonesets,verbs=delete,versions=v1alpha1;v1beta1,name=vcloneset-delete.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-statefulset,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=statefulsets,verbs=delete,versions=v1alpha1;v1beta1,name=vstatefulset-delete.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-uniteddeployment,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=uniteddeployments,verbs=delete,versions=v1alpha1;v1beta1,name=vuniteddeployment-delete.kb.io
// +kubebuilder:webhook:path=/validate-ingress,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=networking.k8s.io,resources=ingresses,verbs=delete,versions=v1;v1beta1,name=vingress.kb.io
package deletion

// Package uniteddeployment serves the admission webhooks of UnitedDeployment: one that fills in defaults, and one that
// rejects what cannot work. Both take v1alpha1 and v1beta1.
//
//	webhooks, err := uniteddeployment.New(client, kinds.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. The API server also validates the rest of a statefulSetTemplate and of a
// deploymentTemplate, by a dry run of such a workload. As in the reference, a statefulSetTemplate alone gets the
// defaults of pod templates: the reconciler applies what the user wrote, and the API server defaults the workloads.
//
// The rules that CEL can express are also in config/webhook/uniteddeployment-policy.yaml, which API servers enforce
// without a webhook. It is for clusters that set these webhooks to Ignore or leave them out, and is applied by hand:
//
//	kubectl apply -f config/webhook/uniteddeployment-policy.yaml
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-uniteddeployment,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=uniteddeployments,verbs=create;update,versions=v1alpha1;v1beta1,name=muniteddeployment.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-uniteddeployment,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=uniteddeployments,verbs=create;update,versions=v1alpha1;v1beta1,name=vuniteddeployment.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=create
package uniteddeployment

// Package statefulset serves the admission webhooks of the StatefulSet of apps.kruise.io: one that fills in defaults,
// and one that rejects what cannot work. Both take v1alpha1 and v1beta1.
//
//	webhooks, err := statefulset.New(client, statefulset.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. With Options.ExpandClaims, an update that changes the size of claims costs a
// read of the storage classes.
//
// The rules that CEL can express are also in config/webhook/statefulset-policy.yaml, which API servers enforce without
// a webhook. It is for clusters that set these webhooks to Ignore or leave them out, and is applied by hand:
//
//	kubectl apply -f config/webhook/statefulset-policy.yaml
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-statefulset,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=statefulsets,verbs=create;update,versions=v1alpha1;v1beta1,name=mstatefulset.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-statefulset,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=statefulsets,verbs=create;update,versions=v1alpha1;v1beta1,name=vstatefulset.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list
package statefulset

// Package daemonset serves the admission webhooks of DaemonSet, for v1alpha1 and v1beta1: the mutating webhook sets
// defaults, and the validating webhook rejects invalid objects.
//
//	webhooks, err := daemonset.New(client, kinds.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws of package webhooks/kinds apply. The mutating webhook adds no defaults to spec.template, as in OpenKruise.
// The validating webhook still validates the template by a dry-run create of a PodTemplate. In v1alpha1 the
// rollingUpdateType Surging is stored as Standard, with maxSurge 1 and maxUnavailable 0 unless these are set.
//
// The rules that CEL can express are also in config/webhook/daemonset-policy.yaml, which API servers enforce without a
// webhook. It is for clusters where these webhooks have failurePolicy Ignore or are not installed. No kustomization
// includes the policy. Apply it with:
//
//	kubectl apply -f config/webhook/daemonset-policy.yaml
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-daemonset,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=daemonsets,verbs=create;update,versions=v1alpha1;v1beta1,name=mdaemonset.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-daemonset,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=daemonsets,verbs=create;update,versions=v1alpha1;v1beta1,name=vdaemonset.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
package daemonset

// Package daemonset serves the admission webhooks of DaemonSet: one that fills in defaults, and one that rejects what
// cannot work. Both take v1alpha1 and v1beta1.
//
//	webhooks, err := daemonset.New(client, kinds.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. The template is stored as the user wrote it, as in the reference. In v1alpha1
// the type Surging gets a surge of one node, and is stored as Standard.
//
// The rules that CEL can express are also in config/webhook/daemonset-policy.yaml, which API servers enforce without a
// webhook. It is for clusters that set these webhooks to Ignore or leave them out, and is applied by hand:
//
//	kubectl apply -f config/webhook/daemonset-policy.yaml
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-daemonset,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=daemonsets,verbs=create;update,versions=v1alpha1;v1beta1,name=mdaemonset.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-daemonset,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=daemonsets,verbs=create;update,versions=v1alpha1;v1beta1,name=vdaemonset.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
package daemonset

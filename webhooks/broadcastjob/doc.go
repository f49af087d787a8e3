// Package broadcastjob serves the admission webhooks of BroadcastJob: one that fills in defaults, and one that rejects
// what cannot work. Both take v1alpha1 and v1beta1, which have the same fields.
//
//	webhooks, err := broadcastjob.New(client, kinds.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. A restart policy that is left out becomes OnFailure.
//
// The rules that CEL can express are also in config/webhook/broadcastjob-policy.yaml, which API servers enforce without
// a webhook. It is for clusters that set these webhooks to Ignore or leave them out, and is applied by hand:
//
//	kubectl apply -f config/webhook/broadcastjob-policy.yaml
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-broadcastjob,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=broadcastjobs,verbs=create;update,versions=v1alpha1;v1beta1,name=mbroadcastjob.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-broadcastjob,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=broadcastjobs,verbs=create;update,versions=v1alpha1;v1beta1,name=vbroadcastjob.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
package broadcastjob

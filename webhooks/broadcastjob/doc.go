// Package broadcastjob serves the admission webhooks of BroadcastJob: one that fills in defaults, and one that rejects what cannot work. Both
// take v1alpha1 and v1beta1, which have the same fields.
//
//	webhooks, err := broadcastjob.New(client, broadcastjob.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package internal/templated: the patch of defaults only adds, the API server validates a template that is new or has changed, and
// an update is not rejected for a fault that the stored job has already. A restart policy that is left out becomes OnFailure.
//
// The rules that need no API server are in the package validation. Those that CEL can express are also in
// config/webhook/broadcastjob-policy.yaml, which API servers enforce without a webhook. It is for clusters that set these webhooks to Ignore or
// leave them out, and is applied by hand.
//
// The client should read without a cache, as one of client.New does.
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-broadcastjob,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=broadcastjobs,verbs=create;update,versions=v1alpha1;v1beta1,name=mbroadcastjob.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-broadcastjob,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=broadcastjobs,verbs=create;update,versions=v1alpha1;v1beta1,name=vbroadcastjob.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
package broadcastjob

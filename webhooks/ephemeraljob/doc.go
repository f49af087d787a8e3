// Package ephemeraljob serves the validating admission webhook of EphemeralJobs.
//
//	webhooks, err := ephemeraljob.New(client, kinds.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. Beyond these:
//   - The API server validates env, envFrom, securityContext and mounts of containers that are new, by a dry run of a
//     pod template. It is asked only about a job that has no other fault.
//   - The selector and the template of a stored job do not change.
//   - A field of a container that the API server does not know is a warning. Pods do not get the field.
//   - There are no defaults: API servers fill in the policies of containers when a pod gets them.
//
// The rules that CEL can express are also in config/webhook/ephemeraljob-policy.yaml, which API servers enforce without
// a webhook.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-v1alpha1-ephemeraljob,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=ephemeraljobs,verbs=create;update,versions=v1alpha1,name=vephemeraljobs.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
package ephemeraljob

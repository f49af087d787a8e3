// Package ephemeraljob serves the validating admission webhook of EphemeralJobs.
//
//	w, err := ephemeraljob.New(client, ephemeraljob.Options{})
//	if err != nil {
//		return err
//	}
//	return w.SetupWithManager(mgr)
//
// Laws:
//   - A rejection of an invalid job is 422, names every fault with its path, and each fault is a cause.
//   - The API server validates env, envFrom, securityContext and mounts of containers that are new, by a dry run of a pod template. It is asked only about
//     containers that have no other fault.
//   - The selector and the template of a stored job do not change.
//   - An update is not rejected for a fault that the stored job has already. The fault is a warning then.
//   - An update of a job that is being deleted is admitted, so that finalizers can be removed.
//   - A field of a container that the API server does not know is a warning. Pods do not get the field.
//   - No input makes the handler panic.
//
// The rules that need no API server are in the package validation. Those that CEL can express are also in config/webhook/ephemeraljob-policy.yaml, which
// API servers enforce without a webhook.
//
// There are no defaults: API servers fill in the policies of containers when a pod gets them.
//
// The client should read without a cache, as one of client.New does.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-v1alpha1-ephemeraljob,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=ephemeraljobs,verbs=create;update,versions=v1alpha1,name=vephemeraljobs.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
package ephemeraljob

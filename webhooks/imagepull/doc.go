// Package imagepull serves the admission webhooks of ImagePullJob, ImageListPullJob and NodeImage: for each, one that
// fills in defaults, and one that rejects what cannot work.
//
//	webhooks, err := imagepull.New(imagepull.Options{Jobs: true})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. No call is made to the API server.
//
// In these the webhooks depart from the reference on purpose:
//   - They reject a list whose deadline is shorter than one attempt, because the webhook would reject all of its jobs.
//   - They report all faults of an object in one answer, with their paths.
//   - They do not sort the tags of a status, because API servers ignore the status in the requests that come here.
//
// Some of the rules of jobs and lists also exist as a policy, config/webhook/imagepull-policy.yaml, which API servers
// enforce without a webhook. It is for clusters that set these webhooks to Ignore or leave them out, and is applied by
// hand:
//
//	kubectl apply -f config/webhook/imagepull-policy.yaml
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-imagepulljob,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=imagepulljobs,verbs=create;update,versions=v1alpha1;v1beta1,name=mimagepulljob-v1beta1.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-imagepulljob,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=imagepulljobs,verbs=create;update,versions=v1alpha1;v1beta1,name=vimagepulljob-v1beta1.kb.io
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-imagelistpulljob,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=imagelistpulljobs,verbs=create;update,versions=v1alpha1;v1beta1,name=mimagelistpulljob-v1beta1.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-imagelistpulljob,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=imagelistpulljobs,verbs=create;update,versions=v1alpha1;v1beta1,name=vimagelistpulljob-v1beta1.kb.io
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-nodeimage,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=nodeimages,verbs=create;update,versions=v1alpha1;v1beta1,name=mnodeimage.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-nodeimage,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=nodeimages,verbs=create;update,versions=v1alpha1;v1beta1,name=vnodeimage.kb.io
package imagepull

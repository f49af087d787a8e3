// Package advancedcronjob serves the admission webhooks of AdvancedCronJob: one that fills in defaults, and one that
// rejects what cannot work. Both take v1alpha1 and v1beta1.
//
//	webhooks, err := advancedcronjob.New(client, kinds.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. The template of the children is validated as a whole where it is new: that of
// pods by the API server, with one call, that of Jobs with another one, a dry run of a Job, and the rest by package
// validation. A Job that a quota or a policy of the cluster denies is no fault of the template.
//
// In these the webhooks depart from the reference on purpose:
//   - They validate Jobs as a whole, and the specs of BroadcastJobs. The children would be rejected one by one.
//   - They default the fields of images to pull also where completionPolicy.type is set.
//   - They report all faults of an object in one answer, with their paths.
//
// The rules that CEL can express are also in config/webhook/advancedcronjob-policy.yaml, which API servers enforce
// without a webhook. It is for clusters that set these webhooks to Ignore or leave them out, and is applied by hand:
//
//	kubectl apply -f config/webhook/advancedcronjob-policy.yaml
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-advancedcronjob,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=advancedcronjobs,verbs=create;update,versions=v1alpha1;v1beta1,name=madvancedcronjob.kb.io
// +kubebuilder:webhook:path=/validate-apps-kruise-io-advancedcronjob,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=advancedcronjobs,verbs=create;update,versions=v1alpha1;v1beta1,name=vadvancedcronjob.kb.io
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=create
package advancedcronjob

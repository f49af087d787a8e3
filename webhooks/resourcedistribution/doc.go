// Package resourcedistribution serves the validating admission webhook of ResourceDistributions. The rules are those of
// package distribution: a distribution is rejected also for what API servers would reject in each copy.
//
//	webhooks, err := resourcedistribution.New(resourcedistribution.Options{On: true})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. Beyond these:
//   - Where nothing distributes, because Options.On is false, every distribution is rejected with 403.
//   - A distribution that names Options.Namespace as a target is rejected; one that selects it otherwise is admitted,
//     and skips it.
//   - The webhook reads and writes nothing. No answer contains a value of a Secret.
//
// Without the webhook, config/webhook/resourcedistribution-policy.yaml has the rules as a ValidatingAdmissionPolicy.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-resourcedistribution,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=resourcedistributions,verbs=create;update,versions=v1alpha1;v1beta1,name=vresourcedistribution.kb.io
package resourcedistribution

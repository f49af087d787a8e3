// Package resourcedistribution serves the validating admission webhook of ResourceDistributions. The rules are those of package
// distribution: a distribution is rejected also for what API servers would reject in each copy.
//
//	err := resourcedistribution.New(resourcedistribution.Options{On: true}).SetupWithManager(mgr)
//
// Laws:
//   - A rejection of an invalid distribution is 422, names every fault with its path, and each fault is a cause.
//   - Where nothing distributes, because Options.On is false, every distribution is rejected with 403.
//   - A distribution that names Options.Namespace as a target is rejected; one that selects it otherwise is admitted, and skips it.
//   - An update is not rejected for a fault that the stored distribution has already. The fault is a warning then.
//   - An update of a distribution that is being deleted is admitted, so that finalizers can be removed.
//   - v1alpha1 is read as v1beta1, as API servers convert it.
//   - The webhook reads and writes nothing. No answer contains a value of a Secret.
//
// Without the webhook, config/webhook/resourcedistribution-policy.yaml has the rules as a ValidatingAdmissionPolicy.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-resourcedistribution,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=resourcedistributions,verbs=create;update,versions=v1alpha1;v1beta1,name=vresourcedistribution.kb.io
package resourcedistribution

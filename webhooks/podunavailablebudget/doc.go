// Package podunavailablebudget serves the validating admission webhook of PodUnavailableBudget. The rules are those of
// package pub; the webhook adds the other budgets of the namespace, from a cache.
//
//	webhooks, err := podunavailablebudget.New(guard, podunavailablebudget.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. What only the annotations of v1alpha1 have is checked as well.
//
// Two budgets that are created within moments may overlap, because each replica checks against its cache. Which of them
// guards a pod is still the same everywhere: see pub.Match.
//
// Without the webhook, config/webhook/podunavailablebudget-policy.yaml has the rules that need nothing but the object.
//
// +kubebuilder:webhook:path=/validate-policy-kruise-io-podunavailablebudget,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=policy.kruise.io,resources=podunavailablebudgets,verbs=create;update,versions=v1alpha1;v1beta1,name=vpodunavailablebudget.kb.io
package podunavailablebudget

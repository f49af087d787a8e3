// Package podprobemarker serves the validating admission webhook of PodProbeMarker. The rules are those of package
// podprobe.
//
//	webhooks, err := podprobemarker.New(podprobemarker.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. Nothing is read and nothing is written.
//
// Without the webhook, config/webhook/podprobemarker-policy.yaml has rules as a ValidatingAdmissionPolicy.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-podprobemarker,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=podprobemarkers,verbs=create;update,versions=v1alpha1,name=vpodprobemarker.kb.io
package podprobemarker

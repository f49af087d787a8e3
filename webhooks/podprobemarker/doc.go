// Package podprobemarker serves the validating admission webhook of PodProbeMarker. The rules are those of package podprobe.
//
//	err := podprobemarker.New(podprobemarker.Options{}).SetupWithManager(mgr)
//
// Laws:
//   - A rejection names every fault with its path, and each fault is a cause.
//   - An update is not rejected for a fault that the stored marker has already. The fault is a warning then.
//   - An update of a marker that is being deleted is admitted, so that controllers can remove finalizers.
//   - Nothing is read and nothing is written.
//
// Without the webhook, config/webhook/podprobemarker-policy.yaml has rules as a ValidatingAdmissionPolicy.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-podprobemarker,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=podprobemarkers,verbs=create;update,versions=v1alpha1,name=vpodprobemarker.kb.io
package podprobemarker

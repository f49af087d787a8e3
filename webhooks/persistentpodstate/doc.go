// Package persistentpodstate serves the validating admission webhook of PersistentPodStates. The rules are
// podstate.Validate and podstate.ValidateUpdate; the webhook adds what must be looked up.
//
//	webhooks, err := persistentpodstate.New(client, persistentpodstate.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The laws are those of package kinds. A creation lists the PersistentPodStates of the namespace, because two must not
// have the same target. The ConfigMap kruise-configuration is read only for a target that is no StatefulSet. An update
// of a valid object with a StatefulSet reads nothing.
//
// Without the webhook, config/webhook/persistentpodstate-policy.yaml has the rules that need nothing but the object.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-persistentpodstate,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=persistentpodstates,verbs=create;update,versions=v1alpha1;v1beta1,name=vpersistentpodstate.kb.io
// +kubebuilder:rbac:groups=apps.kruise.io,resources=persistentpodstates,verbs=list
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=configmaps,resourceNames=kruise-configuration,verbs=get
package persistentpodstate

// Package persistentpodstate serves the validating admission webhook of PersistentPodStates. The rules are validation.PersistentPodState and
// validation.PersistentPodStateUpdate; the webhook adds what must be looked up.
//
//	w, err := persistentpodstate.New(c, persistentpodstate.Options{})
//	...
//	err = w.SetupWithManager(mgr)
//
// Laws:
//   - A rejection of an invalid object is 400, names every fault with its path, and each fault is a cause.
//   - An update is not rejected for a fault that the stored object has already. The fault is a warning then.
//   - An update of an object that is being deleted is admitted, so that finalizers can be removed.
//   - v1alpha1 is read as v1beta1, as API servers convert it.
//   - A creation lists the PersistentPodStates of the namespace, because two must not have the same target. The ConfigMap kruise-configuration
//     is read only for a target that is no StatefulSet. An update of a valid object with a StatefulSet reads nothing.
//   - A lookup that fails is 500 or 504, never a fault of the object.
//
// Without the webhook, config/webhook/persistentpodstate-policy.yaml has the rules that need nothing but the object.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-persistentpodstate,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=persistentpodstates,verbs=create;update,versions=v1alpha1;v1beta1,name=vpersistentpodstate.kb.io
// +kubebuilder:rbac:groups=apps.kruise.io,resources=persistentpodstates,verbs=list
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=configmaps,resourceNames=kruise-configuration,verbs=get
package persistentpodstate

// Package workloadspread serves the validating admission webhook of WorkloadSpread, and has the Allocator that the
// webhooks of pods share. The rules are validation.WorkloadSpread; the webhook adds the other WorkloadSpreads of the
// namespace, from a cache, and the pod template of the target, read live.
//
//	allocator, err := workloadspread.NewAllocator(mgr, workloadspread.AllocatorOptions{})
//	...
//	webhook, err := workloadspread.New(allocator, client, workloadspread.Options{})
//	if err != nil {
//		return err
//	}
//	return webhook.SetupWithManager(mgr)
//
// The laws are those of package kinds. The patch of a subset is applied to the template of the target, and the API
// server validates the result by a dry run, if the patch is new or has changed. A patch that could not be checked is
// admitted with a warning.
//
// Two objects that are created within moments may have the same target, because each replica checks against its cache.
// The first by name spreads the pods then.
//
// Without the webhook, config/webhook/workloadspread-policy.yaml has the rules that need nothing but the object.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-workloadspread,mutating=false,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=workloadspreads,verbs=create;update,versions=v1alpha1;v1beta1,name=vworkloadspread.kb.io
// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=create
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get
// +kubebuilder:rbac:groups="*",resources="*/scale",verbs=get
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=configmaps,resourceNames=kruise-configuration,verbs=get
package workloadspread

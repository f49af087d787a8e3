package process

// What the process itself needs. What controllers and webhooks need stands with them. In its namespace:
//
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=secrets,resourceNames=kruise-webhook-certs,verbs=get;watch;update
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=kruise-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=kruise-system,resources=leases,resourceNames=kruise-manager,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=events,verbs=create;patch
//
// In the cluster, by name, for a warning about the namespaces that it reserves:
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies,resourceNames=kruise-manager-reserved,verbs=get
//
// And for the CA:
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kruise-mutating-webhook-configuration,verbs=get;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=kruise-validating-webhook-configuration,verbs=get;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=advancedcronjobs.apps.kruise.io;broadcastjobs.apps.kruise.io;clonesets.apps.kruise.io;containerrecreaterequests.apps.kruise.io;daemonsets.apps.kruise.io;imagelistpulljobs.apps.kruise.io;imagepulljobs.apps.kruise.io;nodeimages.apps.kruise.io;persistentpodstates.apps.kruise.io;podunavailablebudgets.policy.kruise.io;resourcedistributions.apps.kruise.io;sidecarsets.apps.kruise.io;statefulsets.apps.kruise.io;uniteddeployments.apps.kruise.io;workloadspreads.apps.kruise.io,verbs=get;watch;patch

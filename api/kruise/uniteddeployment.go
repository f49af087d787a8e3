package kruise

// Keys of a pod of a UnitedDeployment. The first two are also labels of the workload that owns the pod.
const (
	// ControllerRevisionHashLabelKey is the label with the name of the UnitedDeployment's ControllerRevision.
	ControllerRevisionHashLabelKey = "apps.kruise.io/controller-revision-hash"
	// SubSetNameLabelKey is the label with the name of the subset.
	SubSetNameLabelKey = "apps.kruise.io/subset-name"
	// UnitedDeploymentReservedPodKey is the label that says "true" of a pod that found no room or has not yet
	// proven itself, and whose substitute runs in a later subset; "false" of any other. Only objects that
	// reserve such pods write it.
	UnitedDeploymentReservedPodKey = "apps.kruise.io/united-deployment-reserved-pod"
)

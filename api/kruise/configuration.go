package kruise

// DefaultNamespace is that of the manager, unless it is deployed elsewhere.
const DefaultNamespace = "kruise-system"

// The ConfigMap with settings of the whole installation, in the namespace of the manager. Its values are JSON.
const (
	// ConfigurationName is its name.
	ConfigurationName = "kruise-configuration"
	// SidecarSetPatchPodMetadataWhiteListKey lists the annotations that SidecarSets may write on pods.
	SidecarSetPatchPodMetadataWhiteListKey = "SidecarSet_PatchPodMetadata_WhiteList"
	// PersistentPodStateWhiteListKey lists the workloads, besides StatefulSets, that a PersistentPodState may refer to.
	PersistentPodStateWhiteListKey = "PPS_Watch_Custom_Workload_WhiteList"
	// WorkloadSpreadWhiteListKey lists the workloads, besides the built-in ones, that a WorkloadSpread may refer to.
	WorkloadSpreadWhiteListKey = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
)

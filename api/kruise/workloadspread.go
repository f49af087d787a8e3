package kruise

// MatchedWorkloadSpreadKey is the annotation with the MatchedWorkloadSpread of a pod.
const MatchedWorkloadSpreadKey = "apps.kruise.io/matched-workloadspread"

// MatchedWorkloadSpread identifies the subset and the WorkloadSpread that a pod belongs to.
type MatchedWorkloadSpread struct {
	// Name of the WorkloadSpread.
	Name string `json:"name"`
	// Subset of it.
	Subset string `json:"subset"`
	// UID stands for the pod in the books where the pod had no name when it was admitted.
	UID string `json:"uid,omitempty"`
}

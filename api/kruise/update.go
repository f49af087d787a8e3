package kruise

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// InPlaceUpdateStrategy tunes how a pod is updated in place.
type InPlaceUpdateStrategy struct {
	// GracePeriodSeconds is the time between marking the pod not ready and changing its spec,
	// so that endpoints are withdrawn before a container restarts. Default 0.
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
	// ImagePreDownloadParallelism is how many nodes pull the new images at once, an absolute number.
	// Without it one node pulls at a time; 0 pauses the pull.
	ImagePreDownloadParallelism *intstr.IntOrString `json:"imagePreDownloadParallelism,omitempty"`
	// ImagePreDownloadTimeoutSeconds is how long one pull may take. Without it 300.
	ImagePreDownloadTimeoutSeconds *int32 `json:"imagePreDownloadTimeoutSeconds,omitempty"`
	// ImagePreDownloadMinUpdatedReadyPods is how many updated pods must be ready before images are
	// pulled ahead for the others. Without it 0.
	ImagePreDownloadMinUpdatedReadyPods *int32 `json:"imagePreDownloadMinUpdatedReadyPods,omitempty"`
}

// UpdatePriorityStrategy says which pods are updated first. The two forms exclude each other.
type UpdatePriorityStrategy struct {
	// OrderPriority orders pods by the trailing integer of a label's value, highest first.
	OrderPriority []UpdatePriorityOrderTerm `json:"orderPriority,omitempty"`
	// WeightPriority orders pods by the sum of the weights whose selector matches, highest first.
	WeightPriority []UpdatePriorityWeightTerm `json:"weightPriority,omitempty"`
}

// UpdatePriorityOrderTerm names a label that orders pods.
type UpdatePriorityOrderTerm struct {
	// OrderedKey is the label's key.
	OrderedKey string `json:"orderedKey"`
}

// UpdatePriorityWeightTerm adds a weight to the pods it selects.
type UpdatePriorityWeightTerm struct {
	// Weight from 0 to 100.
	Weight int32 `json:"weight"`
	// MatchSelector selects pods by their labels.
	MatchSelector metav1.LabelSelector `json:"matchSelector"`
}

// UpdateScatterStrategy spreads the pods that carry a label evenly over the sequence of updates.
type UpdateScatterStrategy []UpdateScatterTerm

// UpdateScatterTerm is one label to spread.
type UpdateScatterTerm struct {
	// Key of the label.
	Key string `json:"key"`
	// Value of the label.
	Value string `json:"value"`
}

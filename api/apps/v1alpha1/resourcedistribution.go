package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What is equal in both versions.
type (
	// ResourceDistributionTargetNamespaces is v1beta1.ResourceDistributionTargetNamespaces.
	ResourceDistributionTargetNamespaces = v1beta1.ResourceDistributionTargetNamespaces
	// ResourceDistributionNamespace is v1beta1.ResourceDistributionNamespace.
	ResourceDistributionNamespace = v1beta1.ResourceDistributionNamespace
	// ResourceDistributionConditionType is v1beta1.ResourceDistributionConditionType.
	ResourceDistributionConditionType = v1beta1.ResourceDistributionConditionType
	// ResourceDistributionConditionStatus is v1beta1.ResourceDistributionConditionStatus.
	ResourceDistributionConditionStatus = v1beta1.ResourceDistributionConditionStatus
)

// ResourceDistributionSpec is what the user wants.
type ResourceDistributionSpec struct {
	// Resource is a Secret or a ConfigMap, complete but for its namespace. Its kind and name cannot be changed.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Resource runtime.RawExtension `json:"resource"`
	// Targets are the namespaces that get a copy. kube-system and kube-public never do.
	Targets ResourceDistributionTargets `json:"targets"`
}

// ResourceDistributionTargets are namespaces.
type ResourceDistributionTargets struct {
	// AllNamespaces means every namespace.
	// +optional
	AllNamespaces bool `json:"allNamespaces,omitempty"`
	// ExcludedNamespaces are left out, whatever else says.
	// +optional
	ExcludedNamespaces ResourceDistributionTargetNamespaces `json:"excludedNamespaces,omitempty"`
	// IncludedNamespaces are meant by name. They need not exist.
	// +optional
	IncludedNamespaces ResourceDistributionTargetNamespaces `json:"includedNamespaces,omitempty"`
	// NamespaceLabelSelector selects namespaces by their labels. An empty one selects none.
	// +optional
	NamespaceLabelSelector metav1.LabelSelector `json:"namespaceLabelSelector,omitempty"`
}

// ResourceDistributionStatus is what the controller found.
type ResourceDistributionStatus struct {
	// Desired counts the namespaces that should have a copy, missing ones too.
	Desired int32 `json:"desired,omitempty"`
	// Succeeded counts those that have one.
	Succeeded int32 `json:"succeeded,omitempty"`
	// Failed counts those that have none.
	Failed int32 `json:"failed,omitempty"`
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are always the six, in the order of their constants.
	Conditions []ResourceDistributionCondition `json:"conditions,omitempty"`
}

// ResourceDistributionCondition is one condition.
type ResourceDistributionCondition struct {
	// Type of the condition.
	Type ResourceDistributionConditionType `json:"type"`
	// Status is True or False.
	Status ResourceDistributionConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is Succeeded or the text of an error.
	Reason string `json:"reason,omitempty"`
	// FailedNamespaces are where it failed.
	FailedNamespaces []string `json:"failedNamespace,omitempty"`
}

// ResourceDistribution keeps copies of a Secret or a ConfigMap in many namespaces.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,scope=Cluster,shortName=distributor
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="Namespaces that should have a copy."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="Namespaces that have one."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="Namespaces that should have one and do not."
type ResourceDistribution struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ResourceDistributionSpec   `json:"spec,omitempty"`
	Status ResourceDistributionStatus `json:"status,omitempty"`
}

// ResourceDistributionList is a list of ResourceDistributions.
//
// +kubebuilder:object:root=true
type ResourceDistributionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceDistribution `json:"items"`
}

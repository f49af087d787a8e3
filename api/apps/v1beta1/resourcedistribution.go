package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Annotations of a copy.
const (
	// ResourceDistributionHashAnnotation holds the SHA-256 of spec.resource as it is stored, in hexadecimal.
	ResourceDistributionHashAnnotation = "kruise.io/resourcedistribution.resource.hashcode"
	// ResourceDistributionFromAnnotation holds the name of the ResourceDistribution.
	ResourceDistributionFromAnnotation = "kruise.io/resourcedistribution.resource.from"
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
	// NamespaceSelector selects namespaces by their labels. An empty one selects none.
	// +optional
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// ResourceDistributionTargetNamespaces are namespaces by name.
type ResourceDistributionTargetNamespaces struct {
	// List of the namespaces.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	List []ResourceDistributionNamespace `json:"list,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// ResourceDistributionNamespace is a namespace.
type ResourceDistributionNamespace struct {
	// Name of the namespace.
	Name string `json:"name,omitempty"`
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

// ResourceDistributionConditionType names a condition. Each reports one kind of failure.
type ResourceDistributionConditionType string

const (
	// ResourceDistributionGetResourceFailed means that the object in a namespace could not be read.
	ResourceDistributionGetResourceFailed ResourceDistributionConditionType = "GetResourceFailed"
	// ResourceDistributionCreateResourceFailed means that a copy could not be created.
	ResourceDistributionCreateResourceFailed ResourceDistributionConditionType = "CreateResourceFailed"
	// ResourceDistributionUpdateResourceFailed means that a copy could not be updated.
	ResourceDistributionUpdateResourceFailed ResourceDistributionConditionType = "UpdateResourceFailed"
	// ResourceDistributionDeleteResourceFailed means that a copy in a namespace that is no target could not be deleted.
	ResourceDistributionDeleteResourceFailed ResourceDistributionConditionType = "DeleteResourceFailed"
	// ResourceDistributionConflictOccurred means that an object of that name has another owner.
	ResourceDistributionConflictOccurred ResourceDistributionConditionType = "ConflictOccurred"
	// ResourceDistributionNamespaceNotExists means that a target does not exist, or is going.
	ResourceDistributionNamespaceNotExists ResourceDistributionConditionType = "NamespaceNotExists"
)

// ResourceDistributionConditionStatus says whether something failed.
type ResourceDistributionConditionStatus string

const (
	// ResourceDistributionConditionTrue means that something failed.
	ResourceDistributionConditionTrue ResourceDistributionConditionStatus = "True"
	// ResourceDistributionConditionFalse means that nothing failed.
	ResourceDistributionConditionFalse ResourceDistributionConditionStatus = "False"
	// ResourceDistributionConditionUnknown is never written.
	ResourceDistributionConditionUnknown ResourceDistributionConditionStatus = "Unknown"
)

// ResourceDistributionReasonSucceeded is the reason of a condition while nothing failed; else it is an error's text.
const ResourceDistributionReasonSucceeded = "Succeeded"

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
	FailedNamespaces []string `json:"failedNamespaces,omitempty"`
}

// ResourceDistribution keeps copies of a Secret or a ConfigMap in many namespaces.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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

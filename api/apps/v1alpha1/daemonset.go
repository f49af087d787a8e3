package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// What is equal in both versions.
type (
	// DaemonSetUpdateStrategyType is v1beta1.DaemonSetUpdateStrategyType.
	DaemonSetUpdateStrategyType = v1beta1.DaemonSetUpdateStrategyType
	// DaemonSetUpdateStrategy is v1beta1.DaemonSetUpdateStrategy.
	DaemonSetUpdateStrategy = v1beta1.DaemonSetUpdateStrategy
	// RollingUpdateDaemonSet is v1beta1.RollingUpdateDaemonSet.
	RollingUpdateDaemonSet = v1beta1.RollingUpdateDaemonSet
	// RollingUpdateType is v1beta1.RollingUpdateType. This version has one value more.
	RollingUpdateType = v1beta1.RollingUpdateType
)

const (
	// RollingUpdateDaemonSetStrategyType is v1beta1.RollingUpdateDaemonSetStrategyType.
	RollingUpdateDaemonSetStrategyType = v1beta1.RollingUpdateDaemonSetStrategyType
	// OnDeleteDaemonSetStrategyType is v1beta1.OnDeleteDaemonSetStrategyType.
	OnDeleteDaemonSetStrategyType = v1beta1.OnDeleteDaemonSetStrategyType
	// StandardRollingUpdateType is v1beta1.StandardRollingUpdateType.
	StandardRollingUpdateType = v1beta1.StandardRollingUpdateType
	// InplaceRollingUpdateType is v1beta1.InplaceRollingUpdateType.
	InplaceRollingUpdateType = v1beta1.InplaceRollingUpdateType
	// DeprecatedSurgingRollingUpdateType is Standard with maxSurge 1 and maxUnavailable 0, unless these are set.
	DeprecatedSurgingRollingUpdateType RollingUpdateType = "Surging"
)

// ProgressiveCreatePod is the annotation that, with value "true", is the field scaleStrategy.partitionedScaling
// of v1beta1.
const ProgressiveCreatePod = "daemonset.kruise.io/progressive-create-pod"

// DaemonSetSpec is what the user wants.
type DaemonSetSpec struct {
	// Selector must match the labels of the template. It cannot be changed.
	Selector *metav1.LabelSelector `json:"selector"`
	// Template of the pods. A node gets a pod when the template's node selector, required node affinity and
	// tolerations admit it.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`
	// UpdateStrategy says how pods follow a new template.
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// MinReadySeconds is how long a pod must be ready to count as available. Default 0.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// BurstReplicas is how many pods one pass may create, delete or update in place: a number, or a percentage
	// of the wanted pods rounded down. Default 250.
	BurstReplicas *intstr.IntOrString `json:"burstReplicas,omitempty"`
	// RevisionHistoryLimit is the number of old revisions kept, not counting those that pods have. Default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// Lifecycle holds pods before deletion. This kind has no hook around an in-place update, and preNormal
	// has no effect.
	Lifecycle *kruise.Lifecycle `json:"lifecycle,omitempty"`
}

// DaemonSetStatus is what the controller found.
type DaemonSetStatus struct {
	// CurrentNumberScheduled counts the nodes that should run a pod and have one.
	CurrentNumberScheduled int32 `json:"currentNumberScheduled"`
	// NumberMisscheduled counts the nodes that should not run a pod and have one.
	NumberMisscheduled int32 `json:"numberMisscheduled"`
	// DesiredNumberScheduled counts the nodes that should run a pod.
	DesiredNumberScheduled int32 `json:"desiredNumberScheduled"`
	// NumberReady counts the nodes that should run a pod and whose pod is ready.
	NumberReady int32 `json:"numberReady"`
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// UpdatedNumberScheduled counts the nodes that should run a pod and have one of the newest revision.
	UpdatedNumberScheduled int32 `json:"updatedNumberScheduled"`
	// NumberAvailable counts the nodes whose pod has been ready for minReadySeconds.
	NumberAvailable int32 `json:"numberAvailable,omitempty"`
	// NumberUnavailable counts the nodes that should run a pod and have no available one.
	NumberUnavailable int32 `json:"numberUnavailable,omitempty"`
	// CollisionCount makes names of ControllerRevisions unique when two templates have one hash.
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Conditions of the set.
	Conditions []appsv1.DaemonSetCondition `json:"conditions,omitempty"`
	// DaemonSetHash is the hash of the template in the spec, as pods carry it in the label
	// controller-revision-hash. It is not the name of a ControllerRevision.
	DaemonSetHash string `json:"daemonSetHash,omitempty"`
}

// DaemonSet runs one pod on each node that the template admits, and updates them in place where it can.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,shortName=daemon;ads
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desiredNumberScheduled",description="Nodes that should run a pod."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.currentNumberScheduled",description="Of those, nodes that have one."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.numberReady",description="Nodes with a ready pod."
// +kubebuilder:printcolumn:name="UP-TO-DATE",type="integer",JSONPath=".status.updatedNumberScheduled",description="Nodes with a pod of the newest revision."
// +kubebuilder:printcolumn:name="AVAILABLE",type="integer",JSONPath=".status.numberAvailable",description="Nodes with an available pod."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="Containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="Images of the template."
type DaemonSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DaemonSetSpec   `json:"spec,omitempty"`
	Status DaemonSetStatus `json:"status,omitempty"`
}

// DaemonSetList is a list of DaemonSets.
//
// +kubebuilder:object:root=true
type DaemonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DaemonSet `json:"items"`
}

// Default fills what the user left out, as the admission webhook does. The template is left to the API server.
func (d *DaemonSet) Default() {
	if r := d.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Type == DeprecatedSurgingRollingUpdateType {
		setDefault(&r.MaxSurge, intstr.FromInt32(1))
		setDefault(&r.MaxUnavailable, intstr.FromInt32(0))
		r.Type = StandardRollingUpdateType
	}
	setDefault(&d.Spec.BurstReplicas, intstr.FromInt32(v1beta1.DefaultDaemonSetBurstReplicas))
	setDefault(&d.Spec.RevisionHistoryLimit, 10)
	d.Spec.UpdateStrategy.Default()
}

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// DaemonSetUpdateStrategyType says when pods follow a new template.
type DaemonSetUpdateStrategyType string

const (
	// RollingUpdateDaemonSetStrategyType updates pods within the budgets of RollingUpdate.
	RollingUpdateDaemonSetStrategyType DaemonSetUpdateStrategyType = "RollingUpdate"
	// OnDeleteDaemonSetStrategyType updates a pod only when it is deleted.
	OnDeleteDaemonSetStrategyType DaemonSetUpdateStrategyType = "OnDelete"
)

// RollingUpdateType says how one pod is brought to a new template.
type RollingUpdateType string

const (
	// StandardRollingUpdateType deletes the pod and creates another on its node.
	StandardRollingUpdateType RollingUpdateType = "Standard"
	// InplaceRollingUpdateType changes the running pod where it can, else recreates it.
	InplaceRollingUpdateType RollingUpdateType = "InPlaceIfPossible"
)

// DefaultDaemonSetBurstReplicas is how many pods one pass may create, delete or update in place by default.
const DefaultDaemonSetBurstReplicas = 250

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
	// ScaleStrategy says how new nodes get their pods.
	ScaleStrategy *DaemonSetScaleStrategy `json:"scaleStrategy,omitempty"`
}

// DaemonSetScaleStrategy says how new nodes get their pods.
type DaemonSetScaleStrategy struct {
	// PartitionedScaling creates pods only on as many nodes as the partition lets be at the newest revision.
	PartitionedScaling bool `json:"partitionedScaling,omitempty"`
}

// DaemonSetUpdateStrategy says how pods follow a new template.
type DaemonSetUpdateStrategy struct {
	// Type is RollingUpdate or OnDelete. Default RollingUpdate.
	Type DaemonSetUpdateStrategyType `json:"type,omitempty"`
	// RollingUpdate is how, when type is RollingUpdate.
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty"`
}

// RollingUpdateDaemonSet limits and orders a rolling update.
type RollingUpdateDaemonSet struct {
	// Type is Standard or InPlaceIfPossible. Default Standard.
	Type RollingUpdateType `json:"rollingUpdateType,omitempty"`
	// MaxUnavailable is how many nodes may be without an available pod while updating: a number, or a
	// percentage of the nodes rounded up. Default 1, and 0 where maxSurge is set.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is how many nodes may have an old and a new pod side by side while updating: a number, or a
	// percentage of the nodes rounded up. It excludes maxUnavailable and type InPlaceIfPossible. Default 0.
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// Selector, over the labels of nodes, names the nodes to update. Without it all are.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Partition is how many nodes stay on older revisions: a number, or a percentage of the wanted pods
	// rounded down. Without it 0.
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// Paused stops updates; nodes still get their pods. Without it false.
	Paused *bool `json:"paused,omitempty"`
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
	// UpdateRevision is the hash of the template in the spec, as pods carry it in the label
	// controller-revision-hash. It is not the name of a ControllerRevision.
	UpdateRevision string `json:"updateRevision,omitempty"`
}

// DaemonSet runs one pod on each node that the template admits, and updates them in place where it can.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	setDefault(&d.Spec.BurstReplicas, intstr.FromInt32(DefaultDaemonSetBurstReplicas))
	setDefault(&d.Spec.RevisionHistoryLimit, 10)
	d.Spec.UpdateStrategy.Default()
}

// Default fills what the user left out. A budget that stands alone leaves the other absent, which counts as 0.
func (u *DaemonSetUpdateStrategy) Default() {
	if u.Type == "" {
		u.Type = RollingUpdateDaemonSetStrategyType
	}
	if u.Type != RollingUpdateDaemonSetStrategyType {
		return
	}
	setDefault(&u.RollingUpdate, RollingUpdateDaemonSet{})
	r := u.RollingUpdate
	if r.Type == "" {
		r.Type = StandardRollingUpdateType
	}
	if r.MaxUnavailable == nil && r.MaxSurge == nil {
		setDefault(&r.MaxUnavailable, intstr.FromInt32(1))
		setDefault(&r.MaxSurge, intstr.FromInt32(0))
	}
}

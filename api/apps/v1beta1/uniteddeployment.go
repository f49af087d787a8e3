package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// UpdateStrategyType says how a new template reaches the subsets.
type UpdateStrategyType string

// ManualUpdateStrategyType gives each subset the partition that the user wrote, 0 where there is none.
const ManualUpdateStrategyType UpdateStrategyType = "Manual"

// UnitedDeploymentScheduleStrategyType says how pods find a subset that has room for them.
type UnitedDeploymentScheduleStrategyType string

const (
	// AdaptiveUnitedDeploymentScheduleStrategyType moves the replicas that a subset cannot schedule to later ones.
	AdaptiveUnitedDeploymentScheduleStrategyType UnitedDeploymentScheduleStrategyType = "Adaptive"
	// FixedUnitedDeploymentScheduleStrategyType keeps to the numbers of the topology.
	FixedUnitedDeploymentScheduleStrategyType UnitedDeploymentScheduleStrategyType = "Fixed"
)

const (
	// DefaultRescheduleCriticalSeconds stands for an absent rescheduleCriticalSeconds.
	DefaultRescheduleCriticalSeconds = 30
	// DefaultUnschedulableDurationSeconds stands for an absent unschedulableDuration.
	DefaultUnschedulableDurationSeconds = 300
)

// AnnotationSubsetPatchKey is the annotation of a workload with the patch of its subset, empty if there is none.
const AnnotationSubsetPatchKey = "apps.kruise.io/subset-patch"

// UnitedDeploymentSpec is what the user wants.
type UnitedDeploymentSpec struct {
	// Replicas is the wanted number of pods in all subsets together. Default 1.
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector must match the labels of the template, both of the workload and of its pods.
	Selector *metav1.LabelSelector `json:"selector"`
	// Template of the workloads, one for each subset.
	Template SubsetTemplate `json:"template,omitempty"`
	// Topology says which subsets there are, and how the replicas are divided among them.
	Topology Topology `json:"topology,omitempty"`
	// UpdateStrategy says how a new template reaches the subsets.
	UpdateStrategy UnitedDeploymentUpdateStrategy `json:"updateStrategy,omitempty"`
	// RevisionHistoryLimit is the number of revisions kept. Default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// SubsetTemplate is the template of the workloads. Exactly one of its members is set.
type SubsetTemplate struct {
	// StatefulSetTemplate makes a built-in StatefulSet of each subset.
	StatefulSetTemplate *StatefulSetTemplateSpec `json:"statefulSetTemplate,omitempty"`
	// AdvancedStatefulSetTemplate makes a StatefulSet of this group of each subset.
	AdvancedStatefulSetTemplate *AdvancedStatefulSetTemplateSpec `json:"advancedStatefulSetTemplate,omitempty"`
	// CloneSetTemplate makes a CloneSet of each subset.
	CloneSetTemplate *CloneSetTemplateSpec `json:"cloneSetTemplate,omitempty"`
	// DeploymentTemplate makes a built-in Deployment of each subset.
	DeploymentTemplate *DeploymentTemplateSpec `json:"deploymentTemplate,omitempty"`
}

// StatefulSetTemplateSpec is the template of a built-in StatefulSet.
type StatefulSetTemplateSpec struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec without replicas and partition, which come from the topology and the update strategy.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec appsv1.StatefulSetSpec `json:"spec"`
}

// AdvancedStatefulSetTemplateSpec is the template of a StatefulSet of this group.
type AdvancedStatefulSetTemplateSpec struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec without replicas and partition, which come from the topology and the update strategy.
	Spec StatefulSetSpec `json:"spec"`
}

// CloneSetTemplateSpec is the template of a CloneSet.
type CloneSetTemplateSpec struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec without replicas and partition, which come from the topology and the update strategy.
	Spec CloneSetSpec `json:"spec"`
}

// DeploymentTemplateSpec is the template of a built-in Deployment.
type DeploymentTemplateSpec struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec without replicas, which come from the topology.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec appsv1.DeploymentSpec `json:"spec"`
}

// UnitedDeploymentUpdateStrategy says how a new template reaches the subsets.
type UnitedDeploymentUpdateStrategy struct {
	// Type is Manual. Default Manual.
	// +kubebuilder:validation:Enum=Manual;""
	Type UpdateStrategyType `json:"type,omitempty"`
	// ManualUpdate holds the partitions.
	ManualUpdate *ManualUpdate `json:"manualUpdate,omitempty"`
}

// ManualUpdate holds the partitions.
type ManualUpdate struct {
	// Partitions are by subset the number of pods that stay on older revisions, 0 for a subset not named.
	Partitions map[string]int32 `json:"partitions,omitempty"`
}

// Topology says which subsets there are, and how the replicas are divided among them.
type Topology struct {
	// Subsets in the order of their priority.
	Subsets []Subset `json:"subsets,omitempty" patchMergeKey:"name" patchStrategy:"merge"`
	// ScheduleStrategy says what happens to pods that find no room.
	ScheduleStrategy UnitedDeploymentScheduleStrategy `json:"scheduleStrategy,omitempty"`
}

// Subset is one domain with its workload.
type Subset struct {
	// Name of the subset. It is part of the name of the workload.
	Name string `json:"name"`
	// NodeSelectorTerm is added to every required node affinity term of the pods. It cannot be changed.
	NodeSelectorTerm corev1.NodeSelectorTerm `json:"nodeSelectorTerm,omitempty"`
	// Tolerations are added to those of the pods. They cannot be changed.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Replicas fixes the share of the subset: a number, or a percentage of the whole. Subsets without divide
	// the rest evenly. It excludes minReplicas and maxReplicas anywhere in the topology, and schedule type Adaptive.
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`
	// MinReplicas are given to this subset before any has more than its own: a number, or a percentage of the
	// whole. Default 0 where a subset has a minimum or a maximum.
	MinReplicas *intstr.IntOrString `json:"minReplicas,omitempty"`
	// MaxReplicas limits the share of this subset: a number, or a percentage of the whole. Without it there is no
	// limit; at least one subset has none.
	MaxReplicas *intstr.IntOrString `json:"maxReplicas,omitempty"`
	// Patch is a strategic merge patch of the pod template, applied last.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Patch runtime.RawExtension `json:"patch,omitempty,omitzero"`
}

// UnitedDeploymentScheduleStrategy says what happens to pods that find no room.
type UnitedDeploymentScheduleStrategy struct {
	// Type is Adaptive or Fixed. Without it Fixed.
	// +kubebuilder:validation:Enum=Adaptive;Fixed;""
	Type UnitedDeploymentScheduleStrategyType `json:"type,omitempty"`
	// Adaptive tunes type Adaptive.
	Adaptive *AdaptiveUnitedDeploymentStrategy `json:"adaptive,omitempty"`
}

// AdaptiveUnitedDeploymentStrategy tunes how replicas move away from subsets without room.
type AdaptiveUnitedDeploymentStrategy struct {
	// RescheduleCriticalSeconds is how long a pod may wait for a node before its subset counts as without
	// room. Without it 30.
	RescheduleCriticalSeconds *int32 `json:"rescheduleCriticalSeconds,omitempty"`
	// UnschedulableDuration is for how many seconds a subset then gets no more pods. With
	// reserveUnschedulablePods it is how long a reserved pod must be ready to count again. Without it 300.
	UnschedulableDuration *int32 `json:"unschedulableDuration,omitempty"`
	// ReserveUnschedulablePods keeps the waiting pods next to their substitutes in later subsets, instead of
	// deleting them. Templates of a StatefulSet do not support it.
	ReserveUnschedulablePods bool `json:"reserveUnschedulablePods,omitempty"`
}

// UnitedDeployment runs one workload in each of several domains, and divides its replicas among them.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:categories=kruise,shortName=ud
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The wanted number of pods."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="Pods of all subsets."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="Pods at the updated revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="Ready pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type UnitedDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   UnitedDeploymentSpec   `json:"spec,omitempty"`
	Status UnitedDeploymentStatus `json:"status,omitempty"`
}

// UnitedDeploymentList is a list of UnitedDeployments.
//
// +kubebuilder:object:root=true
type UnitedDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UnitedDeployment `json:"items"`
}

// Default fills what the user left out, as the admission webhook does. The templates are left to the API server.
func (u *UnitedDeployment) Default() {
	setDefault(&u.Spec.Replicas, 1)
	setDefault(&u.Spec.RevisionHistoryLimit, 10)
	u.Spec.UpdateStrategy.Default()
	u.Spec.Topology.Default()
}

// Default fills what the user left out.
func (s *UnitedDeploymentUpdateStrategy) Default() {
	if s.Type == "" {
		s.Type = ManualUpdateStrategyType
	}
	if s.Type == ManualUpdateStrategyType {
		setDefault(&s.ManualUpdate, ManualUpdate{})
	}
}

// Default gives every subset a minimum where the topology is one of minima and maxima.
func (t *Topology) Default() {
	bounded := false
	for _, s := range t.Subsets {
		if s.Replicas != nil {
			return
		}
		bounded = bounded || s.MinReplicas != nil || s.MaxReplicas != nil
	}
	for i := range t.Subsets {
		if bounded {
			setDefault(&t.Subsets[i].MinReplicas, intstr.FromInt32(0))
		}
	}
}

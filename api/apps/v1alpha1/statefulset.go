package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What is equal in both versions.
type (
	// PodUpdateStrategyType is v1beta1.PodUpdateStrategyType.
	PodUpdateStrategyType = v1beta1.PodUpdateStrategyType
	// StatefulSetUpdateStrategy is v1beta1.StatefulSetUpdateStrategy.
	StatefulSetUpdateStrategy = v1beta1.StatefulSetUpdateStrategy
	// RollingUpdateStatefulSetStrategy is v1beta1.RollingUpdateStatefulSetStrategy.
	RollingUpdateStatefulSetStrategy = v1beta1.RollingUpdateStatefulSetStrategy
	// UnorderedUpdateStrategy is v1beta1.UnorderedUpdateStrategy.
	UnorderedUpdateStrategy = v1beta1.UnorderedUpdateStrategy
)

const (
	// MaxMinReadySeconds is v1beta1.MaxMinReadySeconds.
	MaxMinReadySeconds = v1beta1.MaxMinReadySeconds
	// RecreatePodUpdateStrategyType is v1beta1.RecreatePodUpdateStrategyType.
	RecreatePodUpdateStrategyType = v1beta1.RecreatePodUpdateStrategyType
	// InPlaceIfPossiblePodUpdateStrategyType is v1beta1.InPlaceIfPossiblePodUpdateStrategyType.
	InPlaceIfPossiblePodUpdateStrategyType = v1beta1.InPlaceIfPossiblePodUpdateStrategyType
	// InPlaceOnlyPodUpdateStrategyType is v1beta1.InPlaceOnlyPodUpdateStrategyType.
	InPlaceOnlyPodUpdateStrategyType = v1beta1.InPlaceOnlyPodUpdateStrategyType
	// FailedCreatePod is v1beta1.FailedCreatePod.
	FailedCreatePod = v1beta1.FailedCreatePod
	// FailedUpdatePod is v1beta1.FailedUpdatePod.
	FailedUpdatePod = v1beta1.FailedUpdatePod
)

// StatefulSetSpec is what the user wants.
type StatefulSetSpec struct {
	// Replicas is the wanted number of pods. Default 1.
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector must match the labels of the template. It cannot be changed.
	Selector *metav1.LabelSelector `json:"selector"`
	// Template of the pods.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`
	// VolumeClaimTemplates are claims that each pod gets of its own and finds again when it is recreated.
	// The name of a template is also the name of a volume in the pod.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	// ServiceName names the headless service that gives the pods their DNS names. It cannot be changed.
	ServiceName string `json:"serviceName,omitempty"`
	// PodManagementPolicy is OrderedReady or Parallel. It cannot be changed. Default OrderedReady.
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`
	// UpdateStrategy says how pods follow a new template.
	UpdateStrategy StatefulSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// RevisionHistoryLimit is the number of old revisions kept besides those in use. Default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// StatefulSetStatus is what the controller found.
type StatefulSetStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas counts the pods that exist, those on their way out included.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas counts the pods that run and are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// AvailableReplicas counts the pods in state Normal that have been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`
	// CurrentReplicas counts the pods of the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas"`
	// UpdatedReplicas counts the pods of the update revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// CurrentRevision names the ControllerRevision that pods are updated from.
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision names the ControllerRevision of the template in the spec.
	UpdateRevision string `json:"updateRevision,omitempty"`
	// CollisionCount makes names of ControllerRevisions unique when two templates have one hash.
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Conditions of the set: FailedCreatePod, FailedUpdatePod.
	Conditions []appsv1.StatefulSetCondition `json:"conditions,omitempty"`
	// LabelSelector is the selector as text, for autoscalers.
	LabelSelector string `json:"labelSelector,omitempty"`
}

// StatefulSet runs pods that keep their name, DNS name and claims, and updates them in place where it can.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:categories=kruise,shortName=sts;asts
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The wanted number of pods."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="Pods that exist."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="Pods at the update revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="Ready pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="Containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="Images of the template."
type StatefulSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StatefulSetSpec   `json:"spec,omitempty"`
	Status StatefulSetStatus `json:"status,omitempty"`
}

// StatefulSetList is a list of StatefulSets.
//
// +kubebuilder:object:root=true
type StatefulSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulSet `json:"items"`
}

// Default fills what the user left out, as the admission webhook does. The templates are left to the API server.
func (s *StatefulSet) Default() {
	setDefault(&s.Spec.Replicas, 1)
	setDefault(&s.Spec.RevisionHistoryLimit, 10)
	if s.Spec.PodManagementPolicy == "" {
		s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	s.Spec.UpdateStrategy.Default()
}

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Keys of a SidecarSet and of its ControllerRevisions. Its hashes stand in the annotations kruise.SidecarSetHashKey and
// kruise.SidecarSetHashWithoutImageKey.
const (
	// SidecarSetCanaryAnnotation marks, with the value "true", a set that replaces its base for the pods it matches.
	SidecarSetCanaryAnnotation = "apps.kruise.io/sidecarset-canary"
	// SidecarSetBaseAnnotation holds the name of the base of a canary.
	SidecarSetBaseAnnotation = "apps.kruise.io/sidecarset-base"
	// SidecarSetInjectionFailurePolicyAnnotation says, with the value "Ignore", that pods are created without the set
	// where it cannot be injected. With any other, and without it, they are refused.
	SidecarSetInjectionFailurePolicyAnnotation = "kruisekit.dev/injection-failure-policy"
	// SidecarSetNameLabel is the label of a ControllerRevision with the name of its set.
	SidecarSetNameLabel = "kruise.io/sidecarset-name"
	// SidecarSetCustomVersionLabel is the label of a ControllerRevision with its custom version, and in v1alpha1 of
	// the set, where spec.customVersion does not exist.
	SidecarSetCustomVersionLabel = "apps.kruise.io/sidecarset-custom-version"
)

// The values of a SidecarSet that names none.
const (
	// DefaultSidecarSetMaxUnavailable is the budget of updates.
	DefaultSidecarSetMaxUnavailable = 1
	// DefaultSidecarSetRevisionHistoryLimit is the number of revisions kept.
	DefaultSidecarSetRevisionHistoryLimit = 10
)

// SidecarSetSpec is what the user wants.
type SidecarSetSpec struct {
	// Selector selects pods. It must not be empty.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// NamespaceSelector selects the namespaces of pods. Without it every namespace.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// InitContainers are injected into new pods. They are never updated.
	// +patchMergeKey=name
	// +patchStrategy=merge
	InitContainers []SidecarContainer `json:"initContainers,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Containers are injected into new pods. A new image reaches the pods that have them.
	// +patchMergeKey=name
	// +patchStrategy=merge
	Containers []SidecarContainer `json:"containers,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Volumes for the containers. A pod gets those that its injected containers mount.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +patchMergeKey=name
	// +patchStrategy=merge
	Volumes []corev1.Volume `json:"volumes,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// ImagePullSecrets are added to those of new pods.
	// +patchMergeKey=name
	// +patchStrategy=merge
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// InjectionStrategy says what new pods get.
	InjectionStrategy SidecarSetInjectionStrategy `json:"injectionStrategy,omitempty"`
	// UpdateStrategy says how running pods follow a new image.
	UpdateStrategy SidecarSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// RevisionHistoryLimit is the number of revisions kept, at least 1. Default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// PatchPodMetadata are annotations for pods, written with an injection and with an update.
	PatchPodMetadata []SidecarSetPatchPodMetadata `json:"patchPodMetadata,omitempty"`
	// CustomVersion is the user's name for this revision.
	CustomVersion string `json:"customVersion,omitempty"`
}

// SidecarSetPatchPodMetadata writes annotations on pods.
type SidecarSetPatchPodMetadata struct {
	// Annotations to write.
	Annotations map[string]string `json:"annotations,omitempty"`
	// PatchPolicy is Retain, Overwrite or MergePatchJson. Default Retain.
	PatchPolicy SidecarSetPatchPolicyType `json:"patchPolicy,omitempty"`
}

// SidecarSetPatchPolicyType says what happens to an annotation that the pod has already.
type SidecarSetPatchPolicyType string

const (
	// SidecarSetRetainPatchPolicy leaves it.
	SidecarSetRetainPatchPolicy SidecarSetPatchPolicyType = "Retain"
	// SidecarSetOverwritePatchPolicy replaces it.
	SidecarSetOverwritePatchPolicy SidecarSetPatchPolicyType = "Overwrite"
	// SidecarSetMergePatchJsonPatchPolicy merges the one JSON value into the other.
	SidecarSetMergePatchJsonPatchPolicy SidecarSetPatchPolicyType = "MergePatchJson"
)

// SidecarSetInjectionStrategy says what new pods get.
type SidecarSetInjectionStrategy struct {
	// Paused leaves new pods alone. Running ones are still updated.
	Paused bool `json:"paused,omitempty"`
	// Revision gives new pods a former revision. Without it the current one.
	Revision *SidecarSetInjectRevision `json:"revision,omitempty"`
}

// SidecarSetInjectRevision names the revision that new pods get.
type SidecarSetInjectRevision struct {
	// RevisionName is the name of a ControllerRevision. It goes before CustomVersion.
	RevisionName *string `json:"revisionName,omitempty"`
	// CustomVersion means the newest revision of that custom version.
	CustomVersion *string `json:"customVersion,omitempty"`
	// Policy is Always or Partial. Default Always.
	// +kubebuilder:validation:Enum=Always;Partial
	// +kubebuilder:default=Always
	Policy SidecarSetInjectRevisionPolicy `json:"policy,omitempty"`
}

// SidecarSetInjectRevisionPolicy says which of the new pods get the named revision.
type SidecarSetInjectRevisionPolicy string

const (
	// AlwaysSidecarSetInjectRevisionPolicy means all of them.
	AlwaysSidecarSetInjectRevisionPolicy SidecarSetInjectRevisionPolicy = "Always"
	// PartialSidecarSetInjectRevisionPolicy means those that the update strategy holds back: not selected by its
	// selector, or within the percentage of its partition. The others get the current revision.
	PartialSidecarSetInjectRevisionPolicy SidecarSetInjectRevisionPolicy = "Partial"
)

// SidecarSetUpdateStrategyType says whether running pods follow a new image.
type SidecarSetUpdateStrategyType string

const (
	// NotUpdateSidecarSetStrategyType leaves running pods alone.
	NotUpdateSidecarSetStrategyType SidecarSetUpdateStrategyType = "NotUpdate"
	// RollingUpdateSidecarSetStrategyType updates running pods in place.
	RollingUpdateSidecarSetStrategyType SidecarSetUpdateStrategyType = "RollingUpdate"
)

// SidecarSetUpdateStrategy says how running pods follow a new image.
type SidecarSetUpdateStrategy struct {
	// Type is NotUpdate or RollingUpdate. Default RollingUpdate.
	Type SidecarSetUpdateStrategyType `json:"type,omitempty"`
	// Paused stops updates.
	Paused bool `json:"paused,omitempty"`
	// Selector selects the pods to update. Without it all. It excludes Partition.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Partition is how many pods stay as they are: a number, or a percentage of the matched pods rounded up. Default 0.
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// MaxUnavailable is how many updated pods may be unready at a time: a number, or a percentage of the matched pods
	// rounded up. Default 1.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// PriorityStrategy says which pods are updated first.
	PriorityStrategy *kruise.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
	// ScatterStrategy spreads pods with a label over the sequence of updates. The value * stands for every value found.
	ScatterStrategy kruise.UpdateScatterStrategy `json:"scatterStrategy,omitempty"`
}

// SidecarSetStatus is what the controller found.
type SidecarSetStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// MatchedPods counts the pods that have the containers of this set.
	MatchedPods int32 `json:"matchedPods"`
	// UpdatedPods counts the matched pods at the current revision.
	UpdatedPods int32 `json:"updatedPods"`
	// ReadyPods counts the matched pods that are ready.
	ReadyPods int32 `json:"readyPods"`
	// UpdatedReadyPods counts the updated pods that are ready.
	UpdatedReadyPods int32 `json:"updatedReadyPods,omitempty"`
	// LatestRevision names the ControllerRevision of the spec.
	LatestRevision string `json:"latestRevision,omitempty"`
	// CollisionCount makes names of ControllerRevisions unique when two specs have one hash.
	CollisionCount *int32 `json:"collisionCount,omitempty"`
}

// SidecarSet adds containers to pods when they are created, whatever workload owns them, and later updates the images
// of these containers in place.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kruise,scope=Cluster
// +kubebuilder:printcolumn:name="MATCHED",type="integer",JSONPath=".status.matchedPods",description="Pods that have the containers of this set."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedPods",description="Matched pods at the current revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyPods",description="Matched pods that are ready."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation."
type SidecarSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SidecarSetSpec   `json:"spec,omitempty"`
	Status SidecarSetStatus `json:"status,omitempty"`
}

// SidecarSetList is a list of SidecarSets.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SidecarSet `json:"items"`
}

// Default fills what the user left out, as the admission webhook does. The core fields of containers and volumes are
// left to the API server, and the hashes to the writer of the set.
func (s *SidecarSet) Default() {
	defaultSidecarContainers(s.Spec.InitContainers, AfterAppContainerType)
	defaultSidecarContainers(s.Spec.Containers, BeforeAppContainerType)
	u := &s.Spec.UpdateStrategy
	if u.Type == "" {
		u.Type = RollingUpdateSidecarSetStrategyType
	}
	setDefault(&u.Partition, intstr.FromInt32(0))
	setDefault(&u.MaxUnavailable, intstr.FromInt32(DefaultSidecarSetMaxUnavailable))
	setDefault(&s.Spec.RevisionHistoryLimit, DefaultSidecarSetRevisionHistoryLimit)
	for i := range s.Spec.PatchPodMetadata {
		if p := &s.Spec.PatchPodMetadata[i]; p.PatchPolicy == "" {
			p.PatchPolicy = SidecarSetRetainPatchPolicy
		}
	}
	if r := s.Spec.InjectionStrategy.Revision; r != nil && r.Policy == "" {
		r.Policy = AlwaysSidecarSetInjectRevisionPolicy
	}
}

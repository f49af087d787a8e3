package kruise

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations that SidecarSets write on a pod. The first two stand on the SidecarSet also, there with the plain hash.
const (
	// SidecarSetHashKey holds what was injected: a JSON object of SidecarSetInjected by the name of the set.
	// An old value may have just the hash in place of each object.
	SidecarSetHashKey = "kruise.io/sidecarset-hash"
	// SidecarSetHashWithoutImageKey is like SidecarSetHashKey, with the hash of the set less its images.
	SidecarSetHashWithoutImageKey = "kruise.io/sidecarset-hash-without-image"
	// SidecarSetInjectedListKey holds the names of the injected sets, sorted and joined by commas.
	SidecarSetInjectedListKey = "kruise.io/sidecarset-injected-list"
	// SidecarSetInPlaceUpdateStateKey holds how far updates have come: a JSON object of InPlaceUpdateState, of
	// which revision, updateTimestamp and lastContainerStatuses are used, by the name of the set.
	SidecarSetInPlaceUpdateStateKey = "kruise.io/sidecarset-inplace-update-state"
	// SidecarSetWorkingHotUpgradeContainerKey holds which of two containers serves: a JSON object of the names
	// of containers in the pod by their names in the set.
	SidecarSetWorkingHotUpgradeContainerKey = "kruise.io/sidecarset-working-hotupgrade-container"
	// SidecarSetVersionKeyPrefix precedes the name of a container in the pod. The value is the resource version of
	// the set that the container runs; "0" while it holds the empty image.
	SidecarSetVersionKeyPrefix = "version.sidecarset.kruise.io/"
	// SidecarSetVersionAltKeyPrefix precedes the name of a container in the pod. The value is the version of the other
	// container of the two.
	SidecarSetVersionAltKeyPrefix = "versionalt.sidecarset.kruise.io/"
)

// Environment variables of injected containers.
const (
	// SidecarInjectedEnvName is "true" in every injected container.
	SidecarInjectedEnvName = "IS_INJECTED"
	// SidecarSetVersionEnvName refers to the annotation of SidecarSetVersionKeyPrefix.
	SidecarSetVersionEnvName = "SIDECARSET_VERSION"
	// SidecarSetVersionAltEnvName refers to the annotation of SidecarSetVersionAltKeyPrefix.
	SidecarSetVersionAltEnvName = "SIDECARSET_VERSION_ALT"
)

const (
	// SidecarSetUpgradable is the condition of a pod that reports whether its SidecarSets can update it in place. Its
	// message is a JSON object of truth values by the name of the set.
	SidecarSetUpgradable corev1.PodConditionType = "SidecarSetUpgradable"
	// SidecarSetUpgradableReasonAll is the reason while all sets can.
	SidecarSetUpgradableReasonAll = "AllSidecarsetUpgradable"
	// SidecarSetUpgradableReasonImmutableField is the reason while a set has changed more than images.
	SidecarSetUpgradableReasonImmutableField = "UpdateImmutableField"
)

// SidecarSetInjected is what a pod has of one SidecarSet.
type SidecarSetInjected struct {
	// UpdateTimestamp is when the set was injected or last updated the pod.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// Hash of the set.
	Hash string `json:"hash"`
	// SidecarSetName is the name of the set.
	SidecarSetName string `json:"sidecarSetName"`
	// SidecarList are the names of the containers in the set, sorted.
	SidecarList []string `json:"sidecarList"`
	// ControllerRevision is the name of the revision of the set. It is with SidecarSetHashKey only.
	ControllerRevision string `json:"controllerRevision,omitempty"`
}

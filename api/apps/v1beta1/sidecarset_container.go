package v1beta1

import corev1 "k8s.io/api/core/v1"

// SidecarContainer is a container and how it is added to pods.
type SidecarContainer struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	corev1.Container `json:",inline"`

	// PodInjectPolicy is BeforeAppContainer or AfterAppContainer. Default BeforeAppContainer, for an init container
	// AfterAppContainer.
	PodInjectPolicy PodInjectPolicyType `json:"podInjectPolicy,omitempty"`
	// UpgradeStrategy says how a new image is brought to a running pod.
	UpgradeStrategy SidecarContainerUpgradeStrategy `json:"upgradeStrategy,omitempty"`
	// ShareVolumePolicy says whether the container gets the volume mounts of the pod's own containers.
	ShareVolumePolicy ShareVolumePolicy `json:"shareVolumePolicy,omitempty"`
	// ShareVolumeDevicePolicy says whether the container gets the volume devices of the pod's own containers. Without
	// it, it does not. It is never filled in, since the hash of a set from before this field must not change.
	ShareVolumeDevicePolicy *ShareVolumePolicy `json:"shareVolumeDevicePolicy,omitempty"`
	// TransferEnv copies environment variables of the pod's own containers.
	TransferEnv []TransferEnvVar `json:"transferEnv,omitempty"`
	// ResourcesPolicy computes the resources of the container from those of the pod's own containers.
	// +optional
	ResourcesPolicy *ResourcesPolicy `json:"resourcesPolicy,omitempty"`
}

// PodInjectPolicyType says where in the pod's list a container goes.
type PodInjectPolicyType string

const (
	// BeforeAppContainerType puts it before the pod's own containers.
	BeforeAppContainerType PodInjectPolicyType = "BeforeAppContainer"
	// AfterAppContainerType puts it after the pod's own containers.
	AfterAppContainerType PodInjectPolicyType = "AfterAppContainer"
)

// SidecarContainerUpgradeType says how a new image is brought to a running pod.
type SidecarContainerUpgradeType string

const (
	// SidecarContainerColdUpgrade restarts the container with the new image.
	SidecarContainerColdUpgrade SidecarContainerUpgradeType = "ColdUpgrade"
	// SidecarContainerHotUpgrade has two containers in the pod, of which one serves and the other runs an empty
	// image; an upgrade changes their parts.
	SidecarContainerHotUpgrade SidecarContainerUpgradeType = "HotUpgrade"
)

// SidecarContainerUpgradeStrategy says how a new image is brought to a running pod.
type SidecarContainerUpgradeStrategy struct {
	// UpgradeType is ColdUpgrade or HotUpgrade. It cannot be changed. Default ColdUpgrade.
	UpgradeType SidecarContainerUpgradeType `json:"upgradeType,omitempty"`
	// HotUpgradeEmptyImage is the image of the container that is not at work.
	HotUpgradeEmptyImage string `json:"hotUpgradeEmptyImage,omitempty"`
}

// ShareVolumePolicyType says whether something is shared.
type ShareVolumePolicyType string

const (
	// ShareVolumePolicyEnabled shares.
	ShareVolumePolicyEnabled ShareVolumePolicyType = "enabled"
	// ShareVolumePolicyDisabled does not share.
	ShareVolumePolicyDisabled ShareVolumePolicyType = "disabled"
)

// ShareVolumePolicy says whether something is shared.
type ShareVolumePolicy struct {
	// Type is enabled or disabled. Default disabled.
	Type ShareVolumePolicyType `json:"type,omitempty"`
}

// TransferEnvVar copies environment variables of one of the pod's own containers.
type TransferEnvVar struct {
	// SourceContainerName is the container to copy from.
	SourceContainerName string `json:"sourceContainerName,omitempty"`
	// SourceContainerNameFrom is the source of the name of the container to copy from. It goes before SourceContainerName.
	SourceContainerNameFrom *SourceContainerNameSource `json:"sourceContainerNameFrom,omitempty"`
	// EnvName is a variable to copy.
	EnvName string `json:"envName,omitempty"`
	// EnvNames are more variables to copy.
	EnvNames []string `json:"envNames,omitempty"`
}

// SourceContainerNameSource is a source of the name of a container.
type SourceContainerNameSource struct {
	// FieldRef is the label or annotation of the pod that holds the name: metadata.labels['KEY'] or
	// metadata.annotations['KEY'].
	// +optional
	FieldRef *corev1.ObjectFieldSelector `json:"fieldRef,omitempty"`
}

// TargetContainersModeType says how the resources of several containers make one number.
// +kubebuilder:validation:Enum=sum;max
type TargetContainersModeType string

const (
	// TargetContainersModeSum adds them.
	TargetContainersModeSum TargetContainersModeType = "sum"
	// TargetContainersModeMax takes the largest.
	TargetContainersModeMax TargetContainersModeType = "max"
)

// ResourcesPolicy computes the resources of a container from those of the pod's own containers.
type ResourcesPolicy struct {
	// TargetContainersMode is sum or max.
	TargetContainersMode TargetContainersModeType `json:"targetContainersMode"`
	// TargetContainersNameRegex selects the containers that count, by a part of their names.
	// +kubebuilder:default=".*"
	TargetContainersNameRegex string `json:"targetContainersNameRegex,omitempty"`
	// ResourcesExpr holds the expressions.
	ResourcesExpr ResourcesExpr `json:"resourcesExpr"`
}

// ResourcesExpr holds the expressions that compute resources.
type ResourcesExpr struct {
	// Limits are the expressions of the limits.
	// +optional
	Limits *ResourceExprList `json:"limits,omitempty"`
	// Requests are the expressions of the requests.
	// +optional
	Requests *ResourceExprList `json:"requests,omitempty"`
}

// ResourceExprList holds expressions such as "max(cpu*50%, 50m)". Without one, that resource is left unset.
type ResourceExprList struct {
	// CPU is computed of the variable cpu.
	// +optional
	CPU string `json:"cpu,omitempty"`
	// Memory is computed of the variable memory.
	// +optional
	Memory string `json:"memory,omitempty"`
}

// defaultSidecarContainers fills what the user left out of containers; policy is where they go.
func defaultSidecarContainers(containers []SidecarContainer, policy PodInjectPolicyType) {
	for i := range containers {
		c := &containers[i]
		if c.PodInjectPolicy == "" {
			c.PodInjectPolicy = policy
		}
		if c.UpgradeStrategy.UpgradeType == "" {
			c.UpgradeStrategy.UpgradeType = SidecarContainerColdUpgrade
		}
		if c.ShareVolumePolicy.Type == "" {
			c.ShareVolumePolicy.Type = ShareVolumePolicyDisabled
		}
		for j := range c.TransferEnv {
			from := c.TransferEnv[j].SourceContainerNameFrom
			if from != nil && from.FieldRef != nil && from.FieldRef.APIVersion == "" {
				from.FieldRef.APIVersion = "v1"
			}
		}
	}
}

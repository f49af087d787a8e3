package kruise

// Annotations of a pod whose containers start in an order.
const (
	// ContainerLaunchPriorityKey asks, with the value ContainerLaunchOrdered, to start containers in the order of
	// the spec. Any other value is as good as none.
	ContainerLaunchPriorityKey = "apps.kruise.io/container-launch-priority"
	// ContainerLaunchOrdered is the value of ContainerLaunchPriorityKey.
	ContainerLaunchOrdered = "Ordered"
	// ContainerLaunchPriorityCompletedKey is "true" once every container may start.
	ContainerLaunchPriorityCompletedKey = "apps.kruise.io/container-launch-priority-completed"
)

// Environment variables of containers that start in an order.
const (
	// ContainerLaunchPriorityEnvName is the user's: an integer, higher starts first. Without it 0.
	ContainerLaunchPriorityEnvName = "KRUISE_CONTAINER_PRIORITY"
	// ContainerLaunchBarrierEnvName refers to the key of the container's priority in the pod's barrier, so that the
	// kubelet cannot start the container before the key is there.
	ContainerLaunchBarrierEnvName = "KRUISE_CONTAINER_BARRIER"
)

// The barrier is a ConfigMap next to the pod.
const (
	// ContainerLaunchBarrierNameSuffix follows the pod's name in the barrier's.
	ContainerLaunchBarrierNameSuffix = "-barrier"
	// ContainerLaunchBarrierKeyPrefix precedes a priority, as in p_-1. The value of a key is "true".
	ContainerLaunchBarrierKeyPrefix = "p_"
)

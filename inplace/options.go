package inplace

import "time"

// Options say what may change in a running pod. The zero value is what CloneSet and its siblings do by default.
type Options struct {
	// Env says what becomes of environment variables that are fed from labels and annotations.
	Env Env
	// Resources says which changes of cpu and memory are made in place.
	Resources Resources
	// Sidecars lets images and resources of native sidecars change, which are the init containers with
	// restartPolicy Always. Tried on kubelets of 1.36; older ones may take a native sidecar for an init container that is done.
	Sidecars bool
}

// Env says what becomes of environment variables fed from a label or an annotation that changes.
type Env string

const (
	// EnvRestart has the container started again, which is done by the daemon on the node: without a daemon
	// the update does not complete. It is the default.
	EnvRestart Env = ""
	// EnvBlock makes such a change impossible in place. It is the choice where no daemon runs.
	EnvBlock Env = "Block"
	// EnvIgnore changes the metadata and leaves the variables as they are until the container starts again.
	EnvIgnore Env = "Ignore"
)

// Resources says which changes of cpu and memory are made in place.
type Resources string

const (
	// ResourcesFixed makes every change impossible in place. It is the default.
	ResourcesFixed Resources = ""
	// ResourcesReplaced lets values change that are there before and after.
	ResourcesReplaced Resources = "Replaced"
	// ResourcesAdded also lets a first request or limit appear. The class of service must stay.
	ResourcesAdded Resources = "Added"
)

// Rules say how a change is made. The zero value suits a new controller.
type Rules struct {
	// Unready says which changes take a pod out of traffic.
	Unready Unready
	// Harmless names containers that may restart while the pod stays in traffic. It is no matter for changes of
	// their environment, for which daemons restart containers only out of traffic, nor with UnreadyAlways.
	Harmless []string
	// RevisionLabel is the label that tells a pod's revision; empty for controller-revision-hash.
	RevisionLabel string
	// ResizeInSpec writes resources with the rest of the pod, for API servers before 1.32.
	ResizeInSpec bool
	// IgnoreResources counts an update as complete whatever the node says of resources.
	IgnoreResources bool
	// RecreateInfeasible gives a pod up when its node can never have the resources asked for.
	RecreateInfeasible bool
	// RecreateDeferred gives a pod up when its node has had no room for the resources for that long; 0 for never.
	RecreateDeferred time.Duration
}

// Unready says which changes take a pod that has the readiness gate out of traffic.
type Unready string

const (
	// UnreadyOnRestart is for changes that restart a container: of images, of variables, of resources where
	// the resize policy says so. It is the default.
	UnreadyOnRestart Unready = ""
	// UnreadyAlways is for every change but one of resources alone that restarts nothing, as CloneSet and its
	// siblings promise.
	UnreadyAlways Unready = "Always"
)

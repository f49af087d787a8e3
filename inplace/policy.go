package inplace

import (
	"time"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Policy is what may change in a running pod, and how. Give one policy to all functions of this package. The zero value
// is safe where nothing of this project is installed on the nodes: all that needs a node daemon blocks an update in
// place.
type Policy struct {
	// Env is the treatment of environment variables that labels and annotations feed.
	Env Env
	// Resources is which changes of cpu and memory are made in place.
	Resources Resources
	// PodResources does what Resources says also with the resources of the pod as a whole. It needs Kubernetes 1.36.
	PodResources bool
	// NativeSidecars lets images and resources of native sidecars change, which are the init containers with restartPolicy
	// Always. Tested on kubelets of 1.36; older ones may take a native sidecar for a completed init container.
	NativeSidecars bool
	// InitImages lets images of init containers change that run to completion, in the spec alone: no container runs again
	// for such a change. Kubelets before 1.20 restart the pod for it.
	InitImages bool
	// Tolerations lets tolerations be added. None can be removed, so that a rollback recreates the pod.
	Tolerations bool
	// ActiveDeadline lets activeDeadlineSeconds be set or lowered. It counts from the start of the pod: a pod that has run
	// for longer fails at once. A rollback recreates the pod.
	ActiveDeadline bool
	// Unready is which changes take a pod out of traffic.
	Unready Unready
	// Harmless names containers that may restart while the pod stays in traffic. It does not apply to changes of their
	// environment, for which daemons restart containers only out of traffic, nor with UnreadyAlways.
	Harmless []string
	// Keys are the labels, annotations and readiness gates of the pods; nil for those of OpenKruise.
	Keys *kruise.Keys
	// Relabel is when the revision label of a pod changes.
	Relabel Relabel
	// ResizeInSpec writes resources with the rest of the pod, for API servers before 1.32.
	ResizeInSpec bool
	// IgnoreResources counts an update as complete whatever the node reports about resources.
	IgnoreResources bool
	// RecordRestarts has updates record the restarts that they cause, in the annotation PlannedRestartsKey, for
	// UnplannedRestarts. It adds no write.
	RecordRestarts bool
	// RecreateInfeasible gives a pod up when its node can never satisfy the requested resources.
	RecreateInfeasible bool
	// RecreateDeferred gives a pod up when its node has had no room for the resources for that long; 0 for never.
	RecreateDeferred time.Duration
}

// rules are those parts of a policy that Next looks at. They are few enough for closures to capture by value, so that a
// look at a pod that needs nothing allocates nothing.
type rules struct {
	unready            Unready
	harmlessNames      []string
	keys               *kruise.Keys
	relabel            Relabel
	resizeInSpec       bool
	ignoreResources    bool
	recordRestarts     bool
	recreateInfeasible bool
	recreateDeferred   time.Duration
}

func (p Policy) rules() rules {
	return rules{
		p.Unready, p.Harmless, p.Keys, p.Relabel, p.ResizeInSpec, p.IgnoreResources, p.RecordRestarts,
		p.RecreateInfeasible, p.RecreateDeferred,
	}
}

// Env is the treatment of environment variables fed from a label or an annotation that changes.
type Env string

const (
	// EnvBlock rejects such a change in place. It is the default, since no container reads such a variable again
	// unless a node daemon restarts it.
	EnvBlock Env = ""
	// EnvRestart has the node daemon restart the container. Without a daemon the update does not complete.
	EnvRestart Env = "Restart"
	// EnvIgnore changes the metadata and leaves the variables as they are until the container restarts.
	EnvIgnore Env = "Ignore"
)

// Resources is which changes of cpu and memory are made in place.
type Resources string

const (
	// ResourcesFixed rejects every change in place. It is the default.
	ResourcesFixed Resources = ""
	// ResourcesReplaced lets values change that exist before and after.
	ResourcesReplaced Resources = "Replaced"
	// ResourcesAdded also lets a first request or limit appear. The QoS class must stay.
	ResourcesAdded Resources = "Added"
)

// Unready is which changes take a pod that has the readiness gate out of traffic.
type Unready string

const (
	// UnreadyOnRestart is for changes that restart a container: of images, of variables, of resources where
	// the resize policy says so. It is the default.
	UnreadyOnRestart Unready = ""
	// UnreadyAlways is for every change but one of resources alone that restarts nothing, as CloneSet and its
	// siblings promise.
	UnreadyAlways Unready = "Always"
)

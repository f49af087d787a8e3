package inplace

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

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
	// Unready is which changes take a pod out of traffic.
	Unready Unready
	// Keys are the labels, annotations and readiness gates of the pods; nil for those of OpenKruise.
	Keys *kruise.Keys
	// Relabel is when the revision label of a pod changes.
	Relabel Relabel
	// IgnoreResources counts an update as complete whatever the node reports about resources.
	IgnoreResources bool
	// RecordRestarts has updates record the restarts that they cause, in the annotation PlannedRestartsKey, for
	// UnplannedRestarts. It adds no write.
	RecordRestarts bool
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

// Installation is what a cluster offers to in-place updates. State it once, and derive from it the policies of all
// controllers that update pods, so that they agree on who restarts a container.
// The zero value is a cluster without a node daemon and without resizes.
type Installation struct {
	// EnvDaemon means that a daemon on each node restarts containers whose environment comes from labels or annotations
	// that change. Package containerrestart has what such a daemon decides.
	EnvDaemon bool
	// Resize means that API servers and nodes change cpu and memory of running pods.
	Resize bool
	// ResizePods means that they change those of the pod as a whole, too (spec.resources), as since Kubernetes 1.36.
	ResizePods bool
}

// Policy returns the policy that makes use of all that is installed, and of nothing else.
func (i Installation) Policy() Policy {
	p := Policy{IgnoreResources: !i.Resize, PodResources: i.ResizePods}
	if i.EnvDaemon {
		p.Env = EnvRestart
	}
	if i.Resize {
		p.Resources = ResourcesReplaced
	}
	return p
}

// unreadable returns the error of an annotation of a pod that cannot be read. A user must remove the annotation, or
// recreate the pod.
func unreadable(key string, err error) error {
	return fmt.Errorf("metadata.annotations[%s]: %w", key, err)
}

// StateOf reads how far the latest in-place update of a pod has come; nil for a pod that never had one. Nil keys are
// those of OpenKruise.
func StateOf(pod *corev1.Pod, keys *kruise.Keys) (*kruise.InPlaceUpdateState, error) {
	key, text := annotation(pod, keys, (*kruise.Keys).InPlaceStateKey, kruise.InPlaceUpdateStateKeyOld)
	return decode[kruise.InPlaceUpdateState](key, text)
}

// GraceOf reads the change that waits in a pod for the end of its grace period; nil when none does. Nil keys are those
// of OpenKruise.
func GraceOf(pod *corev1.Pod, keys *kruise.Keys) (*kruise.InPlaceUpdateGrace, error) {
	key, text := annotation(pod, keys, (*kruise.Keys).InPlaceGraceKey, kruise.InPlaceUpdateGraceKeyOld)
	return decode[kruise.InPlaceUpdateGrace](key, text)
}

// decode reads the text of an annotation; nil for an empty one.
func decode[T any](key, text string) (*T, error) {
	if text == "" {
		return nil, nil
	}
	value := new(T)
	if err := json.Unmarshal([]byte(text), value); err != nil {
		return nil, unreadable(key, err)
	}
	return value, nil
}

// annotation is the text under a key, or else under an older one, or the oldest one of OpenKruise. An empty text is as
// good as none.
func annotation(pod *corev1.Pod, keys *kruise.Keys, name kruise.Name, oldest string) (from, text string) {
	if key, text, has := keys.Lookup(pod.Annotations, name); has {
		return key, text
	}
	return oldest, pod.Annotations[oldest]
}

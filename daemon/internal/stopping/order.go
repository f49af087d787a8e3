package stopping

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
)

// Runtime is what a container is stopped through: a *cri.Runtime.
type Runtime interface {
	// Exec runs a command in a container and waits for its end.
	Exec(ctx context.Context, id string, c cri.Command) (cri.Output, error)
	// Stop ends a container and waits for that.
	Stop(ctx context.Context, id string, grace time.Duration) error
}

// Order is a container to stop.
type Order struct {
	// Kill says which one, and how.
	Kill containerrestart.Kill
	// Runtime that it runs in.
	Runtime Runtime
	// Object is what events are about.
	Object *corev1.ObjectReference
	// Moot is asked when its turn comes, which may be long after it was given; nil for never. What is moot ends at
	// once, without an error.
	Moot func(ctx context.Context) bool
}

// id is how the runtime itself calls the container.
func (o Order) id() string {
	_, id, _ := strings.Cut(o.Kill.ContainerID, "://")
	return id
}

// named replaces the ID of the container in a text by its name, which users know.
func (o Order) named(text string) string {
	return strings.ReplaceAll(text, o.id(), o.Kill.Container)
}

// ContainerOf refers to a container of a pod, as kubelets do in their events. Spec may be nil where the pod is not
// seen.
func ContainerOf(pod containerrestart.Pod, spec *corev1.PodSpec, container string) *corev1.ObjectReference {
	list := "containers"
	if spec != nil && slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == container
	}) {
		list = "initContainers"
	}
	return &corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		FieldPath: "spec." + list + "{" + container + "}",
	}
}

package cri

import (
	"strconv"
	"time"

	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Labels and annotations that kubelets put on containers and sandboxes.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"

	AnnotationRestartCount = "io.kubernetes.container.restartCount"
)

// State of a container.
type State string

// The states that CRI knows.
const (
	Created State = "Created"
	Running State = "Running"
	Exited  State = "Exited"
	// Unknown is also any state that CRI may learn of later.
	Unknown State = "Unknown"
)

// Container is one run of a container of a pod.
type Container struct {
	// ID without the runtime's name.
	ID string
	// Name of the container in the pod's spec.
	Name string
	// SandboxID is that of the sandbox that it runs in.
	SandboxID string
	State     State
	// CreatedAt, StartedAt and FinishedAt are zero where that has not happened.
	CreatedAt, StartedAt, FinishedAt time.Time
	// ExitCode and Reason are those of a container that has ended. Reason is a single word, such as OOMKilled.
	ExitCode int32
	Reason   string
	// Labels and Annotations that the kubelet has put on it.
	Labels, Annotations map[string]string
}

// PodUID is that of the pod it belongs to, or empty where no kubelet has made it.
func (c Container) PodUID() string { return c.Labels[LabelPodUID] }

// RestartCount is how many containers of this name the pod had before, as far as the kubelet wrote it down.
func (c Container) RestartCount() (int32, bool) {
	n, err := strconv.ParseInt(c.Annotations[AnnotationRestartCount], 10, 32)
	return int32(n), err == nil
}

// containerOf puts together what a list and a status say of a container: the status knows more, but not the sandbox.
func containerOf(listed *criv1.Container, s *criv1.ContainerStatus) Container {
	c := Container{
		ID:          s.GetId(),
		Name:        s.GetLabels()[LabelContainerName],
		SandboxID:   listed.GetPodSandboxId(),
		State:       stateOf(s.GetState()),
		CreatedAt:   timeOf(s.GetCreatedAt()),
		StartedAt:   timeOf(s.GetStartedAt()),
		FinishedAt:  timeOf(s.GetFinishedAt()),
		ExitCode:    s.GetExitCode(),
		Reason:      s.GetReason(),
		Labels:      s.GetLabels(),
		Annotations: s.GetAnnotations(),
	}
	if c.Name == "" {
		c.Name = s.GetMetadata().GetName()
	}
	return c
}

func stateOf(s criv1.ContainerState) State {
	switch s {
	case criv1.ContainerState_CONTAINER_CREATED:
		return Created
	case criv1.ContainerState_CONTAINER_RUNNING:
		return Running
	case criv1.ContainerState_CONTAINER_EXITED:
		return Exited
	default:
		return Unknown
	}
}

// timeOf reads nanoseconds. Zero means never, and so does what runtimes write for a zero time of their own.
func timeOf(nanoseconds int64) time.Time {
	if nanoseconds <= 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

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

	AnnotationHash                     = "io.kubernetes.container.hash" // of the container's spec, hexadecimal
	AnnotationRestartCount             = "io.kubernetes.container.restartCount"
	AnnotationPorts                    = "io.kubernetes.container.ports"          // []corev1.ContainerPort in JSON
	AnnotationPreStop                  = "io.kubernetes.container.preStopHandler" // corev1.LifecycleHandler in JSON
	AnnotationTerminationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationDeletionGrace            = "io.kubernetes.pod.deletionGracePeriod"    // seconds
	AnnotationTerminationGrace         = "io.kubernetes.pod.terminationGracePeriod" // seconds
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
	// ExitCode, Reason and Message are those of a container that has ended. Reason is a single word, such as OOMKilled.
	ExitCode        int32
	Reason, Message string
	// Image is what the kubelet asked for. Newer kubelets ask by the image's ID.
	Image string
	// ImageRef identifies the image that runs: what a pod's status calls imageID.
	ImageRef string
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

// Hash is that of the spec that the kubelet has made the container from.
func (c Container) Hash() (uint64, bool) {
	n, err := strconv.ParseUint(c.Annotations[AnnotationHash], 16, 64)
	return n, err == nil
}

// TerminationGrace is what the pod's spec gives its containers to end.
func (c Container) TerminationGrace() (time.Duration, bool) {
	return c.seconds(AnnotationTerminationGrace)
}

// DeletionGrace is the grace period of the pod's deletion.
func (c Container) DeletionGrace() (time.Duration, bool) {
	return c.seconds(AnnotationDeletionGrace)
}

func (c Container) seconds(annotation string) (time.Duration, bool) {
	// 32 bits, for more would not fit a Duration.
	n, err := strconv.ParseInt(c.Annotations[annotation], 10, 32)
	return time.Duration(n) * time.Second, err == nil
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
		Message:     s.GetMessage(),
		Image:       s.GetImage().GetImage(),
		ImageRef:    s.GetImageRef(),
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

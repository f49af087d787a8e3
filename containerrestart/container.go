package containerrestart

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// State is what a container of the runtime does.
type State string

// The states of a container.
const (
	// StateCreated has not started yet.
	StateCreated State = "Created"
	// StateRunning runs.
	StateRunning State = "Running"
	// StateExited has ended.
	StateExited State = "Exited"
	// StateUnknown is a state that the runtime does not report, as is any other.
	StateUnknown State = "Unknown"
)

// Container is one container as the runtime knows it. Of those with the same name in a pod, all but the newest are
// past.
type Container struct {
	// Name of the container in the pod.
	Name string
	// ID is runtime://id, as in the status of pods.
	ID string
	// State is what it does.
	State State
	// Created and Started are when that happened; zero for not yet.
	Created, Started time.Time
	// ExitCode and Reason are those of a container that has ended.
	ExitCode int32
	Reason   string

	// RestartCount is how many containers of this name there were before.
	RestartCount int32
	// Hash is the kubelet's hash of the container's spec; 0 where it left none.
	Hash uint64
	// PreStop is the hook to run before the container is stopped, and Ports are those that it may name.
	PreStop *corev1.LifecycleHandler
	Ports   []corev1.ContainerPort
	// TerminationGrace and DeletionGrace are seconds that the pod gives to stop, the latter once it is being deleted.
	TerminationGrace, DeletionGrace *int64
	// Pod that it is in.
	Pod Pod
}

// Pod is how a container names its pod.
type Pod struct {
	// Namespace and Name of the pod.
	Namespace, Name string
	// UID of the pod.
	UID types.UID
}

// What kubelets write on the containers that they make.
const (
	labelContainer   = "io.kubernetes.container.name"
	labelPod         = "io.kubernetes.pod.name"
	labelNamespace   = "io.kubernetes.pod.namespace"
	labelUID         = "io.kubernetes.pod.uid"
	noteHash         = "io.kubernetes.container.hash"
	noteRestartCount = "io.kubernetes.container.restartCount"
	notePorts        = "io.kubernetes.container.ports"
	notePreStop      = "io.kubernetes.container.preStopHandler"
	noteTermination  = "io.kubernetes.pod.terminationGracePeriod"
	noteDeletion     = "io.kubernetes.pod.deletionGracePeriod"
)

// ReadContainer returns the container that the labels and annotations of a kubelet describe. A value that cannot be
// parsed counts as absent. The caller sets the state, the times, the exit code and the reason.
func ReadContainer(id string, labels, annotations map[string]string) Container {
	c := Container{
		Name: labels[labelContainer], ID: id,
		Pod: Pod{Namespace: labels[labelNamespace], Name: labels[labelPod], UID: types.UID(labels[labelUID])},
	}
	if n, err := strconv.ParseInt(annotations[noteRestartCount], 10, 32); err == nil {
		c.RestartCount = int32(n)
	}
	if hash, err := strconv.ParseUint(annotations[noteHash], 16, 64); err == nil {
		c.Hash = hash
	}
	c.TerminationGrace, c.DeletionGrace = seconds(annotations[noteTermination]), seconds(annotations[noteDeletion])
	var hook corev1.LifecycleHandler
	if err := json.Unmarshal([]byte(annotations[notePreStop]), &hook); err == nil && hook != (corev1.LifecycleHandler{}) {
		c.PreStop = &hook
	}
	var ports []corev1.ContainerPort
	if err := json.Unmarshal([]byte(annotations[notePorts]), &ports); err == nil && len(ports) > 0 {
		c.Ports = ports
	}
	return c
}

func seconds(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// newest is the latest container of a name; nil where there is none.
func newest(all []Container, name string) *Container {
	var last *Container
	for i := range all {
		c := &all[i]
		if c.Name == name && (last == nil || cmp.Or(c.Created.Compare(last.Created),
			cmp.Compare(c.RestartCount, last.RestartCount), cmp.Compare(c.ID, last.ID)) > 0) {
			last = c
		}
	}
	return last
}

// RuntimeOf is the runtime that all containers of a request run in, which must be one of those that the daemon knows.
// The error goes to Work.NoRuntime.
func RuntimeOf(r *appsv1beta1.ContainerRecreateRequest, known []string) (string, error) {
	var runtime string
	for i := range r.Spec.Containers {
		c := &r.Spec.Containers[i]
		if c.StatusContext == nil || c.StatusContext.ContainerID == "" {
			return "", fmt.Errorf("no statusContext or empty containerID in %s container", c.Name)
		}
		id := c.StatusContext.ContainerID
		kind, rest, ok := strings.Cut(id, "://")
		if !ok || kind == "" || rest == "" {
			return "", fmt.Errorf("failed to parse containerID %s in %s container: it is not of the form runtime://id",
				id, c.Name)
		}
		if runtime != "" && runtime != kind {
			return "", fmt.Errorf("has different runtime types %s, %s in Pod", runtime, kind)
		}
		runtime = kind
	}
	if !slices.Contains(known, runtime) {
		return "", fmt.Errorf("not found runtime service for %s in daemon", runtime)
	}
	return runtime, nil
}

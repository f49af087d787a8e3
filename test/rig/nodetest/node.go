// Package nodetest is a node for tests that have an API server alone: a container runtime in memory, and a kubelet that
// runs the containers of pods in it and reports their status to the API server.
package nodetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// Engine is the name of the runtime.
const Engine = "containerd"

// Annotations that kubelets put on containers.
const (
	annotationHash             = "io.kubernetes.container.hash"             // of the container's spec, hexadecimal
	annotationTerminationGrace = "io.kubernetes.pod.terminationGracePeriod" // seconds
)

// Way is how the containers of a name behave.
type Way struct {
	// Slow is how long they take to be ready.
	Slow time.Duration
	// Stop is called when one is to stop; nil for at once. An error keeps it running.
	Stop func(ctx context.Context) error
	// Exec is called for commands other than env; nil for nothing.
	Exec func(ctx context.Context, args []string) (cri.Output, error)
	// NoEnv says that there is no env in their image.
	NoEnv bool
}

// Stopped is a container that was stopped.
type Stopped struct {
	// Name and ID are the container's.
	Name, ID string
	// At is when it had ended, and Grace what it was given.
	At    time.Time
	Grace time.Duration
}

// Node is a container runtime, as the daemon wants one. Make it with New.
type Node struct {
	name string

	mu         sync.Mutex
	ways       map[string]Way
	containers []cri.Container
	// environments are those that containers have started with, by ID.
	environments map[string]map[string]string
	stopped      []Stopped
	calls        map[string]int
	made         int
	changes      chan struct{}
}

// New makes a node without pods.
func New(name string, ways map[string]Way) *Node {
	return &Node{
		name: name, ways: ways, environments: map[string]map[string]string{}, calls: map[string]int{},
		changes: make(chan struct{}, 1),
	}
}

// Stops are the containers that the daemon has stopped.
func (n *Node) Stops() []Stopped {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.stopped)
}

// Calls is how often the runtime was asked something.
func (n *Node) Calls() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := 0
	for _, c := range n.calls {
		all += c
	}
	return all
}

// CallsOf is how often it was asked one thing, by the name of the method.
func (n *Node) CallsOf(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls[method]
}

// End has a container end, and says whether it ran.
func (n *Node) End(id string, code int32) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.find(id)
	if i < 0 || n.containers[i].State == cri.Exited {
		return false
	}
	c := &n.containers[i]
	c.State, c.FinishedAt, c.ExitCode, c.Reason = cri.Exited, time.Now(), code, "Error"
	n.nudge()
	return true
}

func (n *Node) find(id string) int {
	return slices.IndexFunc(n.containers, func(c cri.Container) bool { return c.ID == id })
}

// start runs the next container of a name.
func (n *Node) start(pod *corev1.Pod, spec *corev1.Container) {
	n.mu.Lock()
	defer n.mu.Unlock()
	restarts := 0
	for _, c := range n.containers {
		if c.PodUID() == string(pod.UID) && c.Name == spec.Name {
			restarts++
		}
	}
	n.made++
	hash := fnv.New32a()
	fmt.Fprint(hash, spec.Name, spec.Image)
	now := time.Now()
	c := cri.Container{
		ID:        fmt.Sprintf("%s-%s-%d", pod.Name, spec.Name, n.made),
		Name:      spec.Name,
		SandboxID: "sandbox-" + string(pod.UID),
		State:     cri.Running,
		CreatedAt: now,
		StartedAt: now,
		Labels: map[string]string{
			cri.LabelContainerName: spec.Name, cri.LabelPodName: pod.Name, cri.LabelPodNamespace: pod.Namespace,
			cri.LabelPodUID: string(pod.UID),
		},
		Annotations: map[string]string{
			cri.AnnotationRestartCount: strconv.Itoa(restarts), annotationHash: strconv.FormatUint(uint64(hash.Sum32()), 16),
			annotationTerminationGrace: strconv.FormatInt(*pod.Spec.TerminationGracePeriodSeconds, 10),
		},
	}
	n.containers = append(n.containers, c)
	n.environments[c.ID] = environmentOf(pod, spec)
	n.nudge()
	if slow := n.ways[spec.Name].Slow; slow > 0 {
		time.AfterFunc(slow, n.nudge)
	}
}

// environmentOf is what a container starts with of the pod's labels and annotations.
func environmentOf(pod *corev1.Pod, spec *corev1.Container) map[string]string {
	environment := map[string]string{}
	for _, e := range spec.Env {
		environment[e.Name] = e.Value
		if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
			continue
		}
		field, key, _ := strings.Cut(strings.TrimSuffix(e.ValueFrom.FieldRef.FieldPath, "']"), "['")
		switch field {
		case "metadata.labels":
			environment[e.Name] = pod.Labels[key]
		case "metadata.annotations":
			environment[e.Name] = pod.Annotations[key]
		}
	}
	return environment
}

// nudge wakes the kubelet.
func (n *Node) nudge() {
	select {
	case n.changes <- struct{}{}:
	default:
	}
}

package ephemeraljob

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// podState is a pod as a job sees it.
type podState string

const (
	// podUnselected is a pod that the selector does not select, and podInactive one that has ended or is being deleted.
	podUnselected podState = "Unselected"
	podInactive   podState = "Inactive"
	// podTaken is a pod with a container that has a name of the template and is not of the job.
	podTaken podState = "Taken"
	// podDue is a pod without the containers.
	podDue podState = "Due"
	// podWaiting is a pod whose containers have not started, and podRunning one with a container that runs.
	podWaiting podState = "Waiting"
	podRunning podState = "Running"
	// podSucceeded is a pod whose containers exited with 0, and podFailed one with a container that failed.
	podSucceeded podState = "Succeeded"
	podFailed    podState = "Failed"
)

// runContainerError is the reason of a container that the runtime could not start. The kubelet does not try again.
const runContainerError = "RunContainerError"

// rule judges pods for one job.
type rule struct {
	uid      types.UID
	selector labels.Selector
	names    map[string]bool
}

// newRule returns the rule of a job. An error is a spec that cannot work.
func newRule(job *ephemeralJob) (*rule, error) {
	selector, err := selectorOf(job.Spec.Selector)
	if err != nil {
		return nil, err
	}
	if len(job.Spec.Template.EphemeralContainers) == 0 {
		return nil, errors.New("spec.template.ephemeralContainers: must not be empty")
	}
	r := &rule{uid: job.UID, selector: selector, names: map[string]bool{}}
	for i := range job.Spec.Template.EphemeralContainers {
		r.names[job.Spec.Template.EphemeralContainers[i].Name] = true
	}
	return r, nil
}

// selectorOf returns the selector of a job. An empty one would select each pod of the namespace, and is an error.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil, errors.New("spec.selector: must not be empty")
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	return selector, nil
}

// state returns the state of a pod.
func (r *rule) state(pod *corev1.Pod) podState {
	switch {
	case !r.selector.Matches(labels.Set(pod.Labels)):
		return podUnselected
	case pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return podInactive
	}
	var own []string
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		switch {
		case !r.names[c.Name]:
		case ownerOf(c) != r.uid:
			return podTaken
		default:
			own = append(own, c.Name)
		}
	}
	if len(own) == 0 {
		return podDue
	}
	return together(pod, own)
}

// ownerOf returns the UID of the job of a container; empty for none. Of two variables with a name, the last one has
// effect.
func ownerOf(c *corev1.EphemeralContainer) types.UID {
	for _, env := range slices.Backward(c.Env) {
		if env.Name == kruise.EphemeralContainerEnvKey {
			return types.UID(env.Value)
		}
	}
	return ""
}

// together returns the state of a pod that has containers of a job. A container that the kubelet has not reported
// waits.
func together(pod *corev1.Pod, names []string) podState {
	reported := map[string]podState{}
	for i := range pod.Status.EphemeralContainerStatuses {
		s := &pod.Status.EphemeralContainerStatuses[i]
		reported[s.Name] = stateOf(&s.State)
	}
	counts := map[podState]int{}
	for _, name := range names {
		counts[reported[name]]++
	}
	switch {
	case counts[podFailed] > 0:
		return podFailed
	case counts[podSucceeded] == len(names):
		return podSucceeded
	case counts[podRunning] > 0:
		return podRunning
	}
	return podWaiting
}

func stateOf(s *corev1.ContainerState) podState {
	switch {
	case s.Terminated != nil && s.Terminated.ExitCode != 0:
		return podFailed
	case s.Terminated != nil && !s.Terminated.FinishedAt.IsZero():
		return podSucceeded
	case s.Running != nil:
		return podRunning
	case s.Waiting != nil && s.Waiting.Reason == runContainerError:
		return podFailed
	}
	return podWaiting
}

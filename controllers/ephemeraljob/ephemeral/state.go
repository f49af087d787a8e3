package ephemeral

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// State is a pod as a job sees it.
type State string

const (
	// Unselected is a pod that the selector does not select.
	Unselected State = "Unselected"
	// Inactive is a pod that has ended or is being deleted.
	Inactive State = "Inactive"
	// Taken is a pod with a container that has a name of the template and is not of the job.
	Taken State = "Taken"
	// Due is a pod without the containers.
	Due State = "Due"
	// Waiting is a pod whose containers have not started.
	Waiting State = "Waiting"
	// Running is a pod with a container that runs.
	Running State = "Running"
	// Succeeded is a pod whose containers exited with 0.
	Succeeded State = "Succeeded"
	// Failed is a pod with a container that failed.
	Failed State = "Failed"
)

// runContainerError is the reason of a container that the runtime could not start. The kubelet does not try again.
const runContainerError = "RunContainerError"

// Rule judges pods for one job.
type Rule struct {
	uid      types.UID
	selector labels.Selector
	names    map[string]bool
}

// NewRule returns the rule of a job. An error is a spec that cannot work.
func NewRule(job *v1alpha1.EphemeralJob) (*Rule, error) {
	selector, err := Selector(job.Spec.Selector)
	if err != nil {
		return nil, err
	}
	if len(job.Spec.Template.EphemeralContainers) == 0 {
		return nil, errors.New("spec.template.ephemeralContainers: must not be empty")
	}
	rule := &Rule{uid: job.UID, selector: selector, names: map[string]bool{}}
	for i := range job.Spec.Template.EphemeralContainers {
		rule.names[job.Spec.Template.EphemeralContainers[i].Name] = true
	}
	return rule, nil
}

// Selector returns the selector of a job. An empty one would select each pod of the namespace, and is an error.
func Selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil, errors.New("spec.selector: must not be empty")
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	return selector, nil
}

// State returns the state of a pod.
func (r *Rule) State(pod *corev1.Pod) State {
	switch {
	case !r.selector.Matches(labels.Set(pod.Labels)):
		return Unselected
	case pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return Inactive
	}
	var own []string
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		switch {
		case !r.names[c.Name]:
		case ownerOf(c) != r.uid:
			return Taken
		default:
			own = append(own, c.Name)
		}
	}
	if len(own) == 0 {
		return Due
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
func together(pod *corev1.Pod, names []string) State {
	reported := map[string]State{}
	for i := range pod.Status.EphemeralContainerStatuses {
		s := &pod.Status.EphemeralContainerStatuses[i]
		reported[s.Name] = stateOf(&s.State)
	}
	counts := map[State]int{}
	for _, name := range names {
		counts[reported[name]]++
	}
	switch {
	case counts[Failed] > 0:
		return Failed
	case counts[Succeeded] == len(names):
		return Succeeded
	case counts[Running] > 0:
		return Running
	}
	return Waiting
}

func stateOf(s *corev1.ContainerState) State {
	switch {
	case s.Terminated != nil && s.Terminated.ExitCode != 0:
		return Failed
	case s.Terminated != nil && !s.Terminated.FinishedAt.IsZero():
		return Succeeded
	case s.Running != nil:
		return Running
	case s.Waiting != nil && s.Waiting.Reason == runContainerError:
		return Failed
	}
	return Waiting
}

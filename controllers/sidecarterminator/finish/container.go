package finish

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// kind is how a container is to end.
type kind int

const (
	// main is the purpose of the pod.
	main kind = iota
	// killed is stopped by a daemon, and its exit code counts.
	killed
	// ignored is stopped by a daemon, and its exit code does not count.
	ignored
	// replaced ends only by another image.
	replaced
)

// container is a container of a pod with its current state.
type container struct {
	spec   *corev1.Container
	status *corev1.ContainerStatus // nil where there is none
	kind   kind
	// image that ends the container where no daemon can stop it; empty for none.
	image string
}

// containersOf returns the containers of a pod, in its order.
func containersOf(pod *corev1.Pod) []container {
	all := make([]container, 0, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		c := container{
			spec: &pod.Spec.Containers[i], image: value(&pod.Spec.Containers[i], kruise.TerminateSidecarWithImageEnvName),
		}
		switch {
		case !truth(c.spec, kruise.TerminateSidecarEnvName) && c.image == "":
		case !truth(c.spec, kruise.TerminateSidecarEnvName):
			c.kind = replaced
		case truth(c.spec, kruise.TerminateSidecarIgnoreExitCodeEnvName):
			c.kind = ignored
		default:
			c.kind = killed
		}
		at := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == c.spec.Name
		})
		if at >= 0 {
			c.status = &pod.Status.ContainerStatuses[at]
		}
		all = append(all, c)
	}
	return all
}

// value returns the literal value of a variable. The last one of a name counts.
func value(c *corev1.Container, name string) string {
	for _, e := range slices.Backward(c.Env) {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func truth(c *corev1.Container, name string) bool { return strings.EqualFold(value(c, name), "true") }

// terminated returns how a container ended; nil while it has not.
func (c container) terminated() *corev1.ContainerStateTerminated {
	if c.status == nil {
		return nil
	}
	return c.status.State.Terminated
}

// finished reports whether a container has ended and does not start again.
func (c container) finished(policy corev1.RestartPolicy) bool {
	end := c.terminated()
	if end == nil {
		return false
	}
	if own := c.spec.RestartPolicy; own != nil {
		policy = corev1.RestartPolicy(*own)
	}
	for _, rule := range c.spec.RestartPolicyRules {
		if applies(rule, end.ExitCode) {
			return false // each action there is starts it again
		}
	}
	return policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && end.ExitCode == 0
}

func applies(rule corev1.ContainerRestartRule, code int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	in := slices.Contains(rule.ExitCodes.Values, code)
	switch rule.ExitCodes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return in
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !in
	default:
		return false
	}
}

// neverRan reports whether there is nothing to stop: the container has no ID.
func (c container) neverRan() bool {
	return c.status == nil || c.status.ContainerID == "" && c.status.State.Running == nil
}

// of returns the containers of some kinds.
func of(all []container, wanted ...kind) []container {
	var some []container
	for _, c := range all {
		if slices.Contains(wanted, c.kind) {
			some = append(some, c)
		}
	}
	return some
}

// ended reports whether all of some containers have ended.
func ended(some []container) bool {
	return !slices.ContainsFunc(some, func(c container) bool { return c.terminated() == nil })
}

// lastEnd returns when the last of some containers ended.
func lastEnd(some []container) time.Time {
	var last time.Time
	for _, c := range some {
		if end := c.terminated(); end != nil && end.FinishedAt.After(last) {
			last = end.FinishedAt.Time
		}
	}
	return last
}

func names(some []container) []string {
	all := make([]string, 0, len(some))
	for _, c := range some {
		all = append(all, c.spec.Name)
	}
	return all
}

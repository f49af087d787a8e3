package pub

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// Available reports whether a pod counts as available: it is ready, and its containers are those of its spec.
func Available(pod *corev1.Pod, p Policy) bool { return Ready(pod) && Consistent(pod, p) }

// Active reports whether a pod counts at all: it is neither finished nor terminating.
func Active(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil
}

// Exempt reports whether the user took a pod out of its budget.
func Exempt(pod *corev1.Pod) bool {
	exempt, err := strconv.ParseBool(pod.Annotations[kruise.PodPubNoProtectionKey])
	return err == nil && exempt
}

// Ready reports whether a pod runs and is ready, does not terminate, and has no label that makes the pod unavailable.
func Ready(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || MarkedUnavailable(pod) {
		return false
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// MarkedUnavailable reports whether a label makes a pod unavailable.
func MarkedUnavailable(pod *corev1.Pod) bool {
	for key := range pod.Labels {
		if strings.HasPrefix(key, kruise.PubUnavailablePodLabelPrefix) {
			return true
		}
	}
	return false
}

// Consistent reports whether the containers of a pod are those of its spec, as far as updates in place and images by
// digest show it.
func Consistent(pod *corev1.Pod, p Policy) bool {
	digests := 0
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if !strings.Contains(c.Image, "@") {
			continue
		}
		digests++
		status := statusOf(pod.Status.ContainerStatuses, c.Name)
		if status == nil || !inplace.SameImage(c.Image, withoutScheme(status.ImageID)) {
			return false
		}
	}
	if digests > 0 && digests == len(pod.Spec.Containers) {
		return true
	}
	if !sidecarsCompleted(pod) {
		return false
	}
	completed, _ := inplace.Completed(pod, inplace.Policy{IgnoreResources: !p.Installed.Resize})
	return completed
}

func withoutScheme(imageID string) string {
	if _, id, ok := strings.Cut(imageID, "://"); ok {
		return id
	}
	return imageID
}

// sidecarsCompleted reports whether the updates in place of injected containers are complete.
func sidecarsCompleted(pod *corev1.Pod) bool {
	text, ok := pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey]
	if !ok || pod.Annotations[kruise.SidecarSetInjectedListKey] == "" || !hasInjected(pod) {
		return true
	}
	states, err := sidecarStates(text)
	if err != nil {
		return false
	}
	for set := range strings.SplitSeq(pod.Annotations[kruise.SidecarSetInjectedListKey], ",") {
		for name, last := range states[set].LastContainerStatuses {
			c, status := injected(pod, name), statusOf(pod.Status.ContainerStatuses, name)
			if c != nil && status != nil && status.ImageID == last.ImageID && !inplace.SameImage(c.Image, status.Image) {
				return false
			}
		}
	}
	return true
}

func sidecarStates(text string) (map[string]kruise.InPlaceUpdateState, error) {
	var states map[string]kruise.InPlaceUpdateState
	err := json.Unmarshal([]byte(text), &states)
	return states, err
}

func hasInjected(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		if isInjected(&pod.Spec.Containers[i]) {
			return true
		}
	}
	return false
}

// injected returns the injected container with a name; nil where there is none.
func injected(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name && isInjected(c) {
			return c
		}
	}
	return nil
}

func isInjected(c *corev1.Container) bool {
	for i := range c.Env {
		if c.Env[i].Name == kruise.SidecarInjectedEnvName {
			return c.Env[i].Value == "true"
		}
	}
	return false
}

func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

package containerrestart

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// leastDeadline is the shortest activeDeadlineSeconds.
const leastDeadline = 3

// Check says what is wrong with a new request by itself. Admit says so too, before it looks at anything else; a caller
// that has to read the pod for it can be spared that.
func Check(r *appsv1beta1.ContainerRecreateRequest) field.ErrorList {
	r = r.DeepCopy()
	r.Default()
	return checkSpec(&r.Spec)
}

// Admit completes a new request with what has to be known of its pod later, or says what is wrong with it. The pod is
// the one that the request names, the node the one that the pod is on; nil where there is none. What is wrong with the
// request itself comes first: as long as that is something, neither is read.
func Admit(
	r *appsv1beta1.ContainerRecreateRequest, pod *corev1.Pod, node *corev1.Node,
) (*appsv1beta1.ContainerRecreateRequest, field.ErrorList) {
	r = r.DeepCopy()
	r.Default()
	label(r, appsv1beta1.ContainerRecreateRequestActiveKey, "true")
	if faults := checkSpec(&r.Spec); len(faults) > 0 {
		return nil, faults
	}
	if fault := checkPod(r, pod, node); fault != nil {
		return nil, field.ErrorList{fault}
	}
	label(r, appsv1beta1.ContainerRecreateRequestNodeNameKey, pod.Spec.NodeName)
	label(r, appsv1beta1.ContainerRecreateRequestPodUIDKey, string(pod.UID))
	if node.Labels[kruise.NodeTypeKey] == kruise.NodeTypeVirtualKubelet {
		label(r, kruise.NodeTypeKey, kruise.NodeTypeVirtualKubelet)
	}
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil &&
		r.Spec.Strategy.TerminationGracePeriodSeconds == nil {
		seconds := *grace
		r.Spec.Strategy.TerminationGracePeriodSeconds = &seconds
	}
	if faults := fillContainers(r.Spec.Containers, pod); len(faults) > 0 {
		return nil, faults
	}
	return r, nil
}

func label(r *request, key, value string) {
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	r.Labels[key] = value
}

// checkSpec judges what can be judged without the pod.
func checkSpec(spec *appsv1beta1.ContainerRecreateRequestSpec) field.ErrorList {
	var faults field.ErrorList
	at, strategy := field.NewPath("spec"), spec.Strategy
	if spec.PodName == "" {
		faults = append(faults, field.Required(at.Child("podName"), "the name of a pod in the same namespace"))
	}
	if len(spec.Containers) == 0 {
		faults = append(faults, field.Required(at.Child("containers"), "at least one"))
	}
	if d := spec.ActiveDeadlineSeconds; d != nil && *d < leastDeadline {
		faults = append(faults, field.Invalid(at.Child("activeDeadlineSeconds"), *d, "must be at least 3"))
	}
	at = at.Child("strategy")
	if g := strategy.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		faults = append(faults, field.Invalid(at.Child("terminationGracePeriodSeconds"), *g, "must not be negative"))
	}
	if g := strategy.UnreadyGracePeriodSeconds; g != nil && *g < 0 {
		faults = append(faults, field.Invalid(at.Child("unreadyGracePeriodSeconds"), *g, "must not be negative"))
	}
	known := []appsv1beta1.ContainerRecreateRequestFailurePolicyType{
		appsv1beta1.ContainerRecreateRequestFailurePolicyFail, appsv1beta1.ContainerRecreateRequestFailurePolicyIgnore,
	}
	if p := strategy.FailurePolicy; p != known[0] && p != known[1] {
		faults = append(faults, field.NotSupported(at.Child("failurePolicy"), p, known))
	}
	return faults
}

// checkPod returns why containers of a pod cannot be restarted, or nil.
func checkPod(r *request, pod *corev1.Pod, node *corev1.Node) *field.Error {
	at, name := field.NewPath("spec", "podName"), r.Spec.PodName
	switch {
	case pod == nil:
		return field.NotFound(at, name)
	case !active(pod) && lifecycle.ConditionOf(pod, kruise.SidecarTerminated) == nil:
		return field.Invalid(at, name, "the pod has ended, or is being deleted")
	case pod.Spec.NodeName == "":
		return field.Invalid(at, name, "the pod is on no node yet")
	case node == nil:
		return field.Invalid(at, name, "node "+pod.Spec.NodeName+" of the pod does not exist")
	}
	return nil
}

func active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !hasEnded(pod)
}

// fillContainers notes in each container how it runs now, and how it is stopped.
func fillContainers(containers []appsv1beta1.ContainerRecreateRequestContainer, pod *corev1.Pod) field.ErrorList {
	var faults field.ErrorList
	seen := map[string]bool{}
	for i := range containers {
		c, at := &containers[i], field.NewPath("spec", "containers").Index(i)
		if seen[c.Name] {
			faults = append(faults, field.Duplicate(at.Child("name"), c.Name))
			continue
		}
		seen[c.Name] = true
		if wrong := checkUntouched(c, at); len(wrong) > 0 {
			faults = append(faults, wrong...)
			continue
		}
		template, status := containerOf(pod, c.Name), statusOf(pod, c.Name)
		switch {
		case template == nil:
			faults = append(faults, field.NotFound(at.Child("name"), c.Name))
		case status == nil:
			faults = append(faults, field.Invalid(at.Child("name"), c.Name, "the container has no status yet"))
		case status.ContainerID == "":
			faults = append(faults, field.Invalid(at.Child("name"), c.Name, "the container has never run"))
		default:
			fill(c, template, status)
		}
	}
	return faults
}

// checkUntouched refuses what only we may set.
func checkUntouched(c *appsv1beta1.ContainerRecreateRequestContainer, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{{"preStop", c.PreStop != nil}, {"ports", len(c.Ports) > 0}, {"statusContext", c.StatusContext != nil}} {
		if f.set {
			faults = append(faults, field.Forbidden(at.Child(f.name), "is taken from the pod"))
		}
	}
	return faults
}

func fill(
	c *appsv1beta1.ContainerRecreateRequestContainer, template *corev1.Container, status *corev1.ContainerStatus,
) {
	c.StatusContext = &appsv1beta1.ContainerRecreateRequestContainerContext{
		ContainerID: status.ContainerID, RestartCount: status.RestartCount,
	}
	if template.Lifecycle == nil || template.Lifecycle.PreStop == nil {
		return
	}
	// Other hooks have no place in the request: the daemon takes them from the pod.
	hook := template.Lifecycle.PreStop.DeepCopy()
	if hook.Exec == nil && hook.HTTPGet == nil && hook.TCPSocket == nil {
		return
	}
	c.PreStop = &appsv1beta1.CRRProbeHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet, TCPSocket: hook.TCPSocket}
	if hook.HTTPGet != nil {
		c.Ports = append(c.Ports, template.Ports...)
	}
}

// containerOf finds a container that runs as long as the pod does: one of its own, or a native sidecar.
func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return c
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			return c
		}
	}
	return nil
}

func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

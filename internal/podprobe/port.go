package podprobe

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// resolve returns a probe with numbers for its ports. The containers of a pod are the regular ones and init containers
// that restart.
func resolve(pod *corev1.Pod, p *v1alpha1.PodContainerProbe) (v1alpha1.ContainerProbeSpec, error) {
	port := portOf(&p.Probe)
	if port == nil || port.Type != intstr.String {
		return p.Probe, nil
	}
	number, err := numberOf(pod, p.ContainerName, port.StrVal)
	if err != nil {
		return v1alpha1.ContainerProbeSpec{}, err
	}
	resolved := *p.Probe.DeepCopy()
	*portOf(&resolved) = intstr.FromInt32(number)
	return resolved, nil
}

func portOf(p *v1alpha1.ContainerProbeSpec) *intstr.IntOrString {
	switch {
	case p.TCPSocket != nil:
		return &p.TCPSocket.Port
	case p.HTTPGet != nil:
		return &p.HTTPGet.Port
	}
	return nil
}

// numberOf returns the number of a port that has a name in a container, or that is a number as text.
func numberOf(pod *corev1.Pod, container, port string) (int32, error) {
	ports, ok := portsOf(pod, container)
	if !ok {
		return 0, fmt.Errorf("container %q does not exist", container)
	}
	var number int32
	if i := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == port }); i >= 0 && port != "" {
		number = ports[i].ContainerPort
	} else if parsed, err := strconv.ParseInt(port, 10, 32); err == nil {
		number = int32(parsed)
	} else {
		return 0, fmt.Errorf("container %q has no port %q", container, port)
	}
	if number < 1 || number > mostPort {
		return 0, fmt.Errorf("port %q of container %q is %d", port, container, number)
	}
	return number, nil
}

const mostPort = 65535

func portsOf(pod *corev1.Pod, container string) ([]corev1.ContainerPort, bool) {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == container {
			return c.Ports, true
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == container && restarts(c) {
			return c.Ports, true
		}
	}
	return nil, false
}

func restarts(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

package podprobe_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// podOf is a pod that is probed, with a container main and a sidecar among the init containers.
func podOf(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), Labels: labels,
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1",
			InitContainers: []corev1.Container{
				{Name: "init-1"},
				{
					Name:          "init-2",
					RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
					Ports:         []corev1.ContainerPort{{Name: "mesh", ContainerPort: 15000}},
				},
			},
			Containers: []corev1.Container{
				{Name: "main", Ports: []corev1.ContainerPort{{Name: "main-port", ContainerPort: 80}}},
				{Name: "envoy"},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}},
		},
	}
}

// markerOf is a marker of pods with the label app.
func markerOf(namespace, name, app string, probes ...v1alpha1.PodContainerProbe) *v1alpha1.PodProbeMarker {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name),
	}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	m.Spec.Probes = probes
	return m
}

// execOf is a probe of the container main with a condition example.com/<name>.
func execOf(name string, command ...string) v1alpha1.PodContainerProbe {
	p := v1alpha1.PodContainerProbe{Name: name, ContainerName: "main", PodConditionType: "example.com/" + name}
	p.Probe.Exec = &corev1.ExecAction{Command: command}
	return p
}

func tcpOf(name, container string, port intstr.IntOrString) v1alpha1.PodContainerProbe {
	p := v1alpha1.PodContainerProbe{Name: name, ContainerName: container, PodConditionType: "example.com/" + name}
	p.Probe.TCPSocket = &corev1.TCPSocketAction{Port: port}
	return p
}

func policyOf(state v1alpha1.ProbeState, key, value string) v1alpha1.ProbeMarkerPolicy {
	return v1alpha1.ProbeMarkerPolicy{
		State: state, Labels: map[string]string{key: value}, Annotations: map[string]string{key: value},
	}
}

func web() map[string]string { return map[string]string{"app": "web"} }

// told is a content in short: pod ip: probe=container/handler, ...
func told(all []v1alpha1.PodProbe) []string {
	var lines []string
	for _, p := range all {
		line := p.Namespace + "/" + p.Name + " " + p.IP + ":"
		for _, c := range p.Probes {
			line += fmt.Sprintf(" %s=%s/%s", c.Name, c.ContainerName, handlerOf(&c.Probe))
		}
		lines = append(lines, line)
	}
	return lines
}

func handlerOf(p *v1alpha1.ContainerProbeSpec) string {
	switch {
	case p.Exec != nil:
		return fmt.Sprint(p.Exec.Command)
	case p.TCPSocket != nil:
		return p.TCPSocket.Port.String()
	case p.HTTPGet != nil:
		return p.HTTPGet.Port.String() + p.HTTPGet.Path
	case p.GRPC != nil:
		return fmt.Sprintf("grpc:%d", p.GRPC.Port)
	}
	return "nothing"
}

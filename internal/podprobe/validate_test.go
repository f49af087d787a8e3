package podprobe_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

// TestValidate has the cases of acceptance 18, each as a change of a valid marker.
func TestValidate(t *testing.T) {
	first := func(change func(*v1alpha1.PodContainerProbe)) func(*v1alpha1.PodProbeMarker) {
		return func(m *v1alpha1.PodProbeMarker) { change(&m.Spec.Probes[0]) }
	}
	handler := func(change func(*corev1.Probe)) func(*v1alpha1.PodProbeMarker) {
		return first(func(p *v1alpha1.PodContainerProbe) { p.Probe.Exec = nil; change(&p.Probe.Probe) })
	}
	get := func(change func(*corev1.HTTPGetAction)) func(*v1alpha1.PodProbeMarker) {
		return handler(func(p *corev1.Probe) {
			p.HTTPGet = &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(80), Scheme: corev1.URISchemeHTTP}
			change(p.HTTPGet)
		})
	}
	socket := func(port intstr.IntOrString, host string) func(*v1alpha1.PodProbeMarker) {
		return handler(func(p *corev1.Probe) { p.TCPSocket = &corev1.TCPSocketAction{Port: port, Host: host} })
	}
	const probe = "spec.probes[0]."
	cases := map[string]struct {
		change func(*v1alpha1.PodProbeMarker)
		want   []string
	}{
		"valid":       {func(*v1alpha1.PodProbeMarker) {}, nil},
		"no selector": {func(m *v1alpha1.PodProbeMarker) { m.Spec.Selector = nil }, []string{"spec.selector"}},
		"no probes":   {func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = nil }, []string{"spec.probes"}},
		"name twice": {func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = append(m.Spec.Probes, execOf("a", "x"))
			m.Spec.Probes[1].PodConditionType = "x"
		}, []string{"spec.probes[1].name"}},
		"condition twice": {func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = append(m.Spec.Probes, execOf("b", "x"))
			m.Spec.Probes[1].PodConditionType = "example.com/a"
		}, []string{"spec.probes[1].podConditionType"}},
		"name with #": {first(func(p *v1alpha1.PodContainerProbe) { p.Name = "a#b" }), []string{probe + "name"}},
		"reserved name": {
			first(func(p *v1alpha1.PodContainerProbe) { p.Name = "Initialized" }), []string{probe + "name"},
		},
		"no container": {
			first(func(p *v1alpha1.PodContainerProbe) { p.ContainerName = "" }), []string{probe + "containerName"},
		},
		"no effect": {
			first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType = "" }), []string{probe + "podConditionType"},
		},
		"malformed condition": {
			first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType = "#5invalid" }),
			[]string{probe + "podConditionType"},
		},
		"reserved condition": {first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType = "Ready" }), nil},
		"no command": {
			first(func(p *v1alpha1.PodContainerProbe) { p.Probe.Exec.Command = nil }), []string{probe + "probe.exec.command"},
		},
		"no handler": {handler(func(*corev1.Probe) {}), []string{probe + "probe"}},
		"two handlers": {first(func(p *v1alpha1.PodContainerProbe) {
			p.Probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}
		}), []string{probe + "probe.tcpSocket"}},
		"negative numbers": {
			first(func(p *v1alpha1.PodContainerProbe) {
				p.Probe.PeriodSeconds, p.Probe.TimeoutSeconds, p.Probe.InitialDelaySeconds, p.Probe.SuccessThreshold,
					p.Probe.FailureThreshold = -1, -1, -1, -1, -1
			}),
			[]string{
				probe + "probe.failureThreshold", probe + "probe.initialDelaySeconds", probe + "probe.periodSeconds",
				probe + "probe.successThreshold", probe + "probe.timeoutSeconds",
			},
		},
		"tcp":                     {socket(intstr.FromString("web"), ""), nil},
		"tcp port 0":              {socket(intstr.FromInt32(0), ""), []string{probe + "probe.tcpSocket.port"}},
		"tcp port without letter": {socket(intstr.FromString("80"), ""), []string{probe + "probe.tcpSocket.port"}},
		"tcp host":                {socket(intstr.FromInt32(80), "example.com"), []string{probe + "probe.tcpSocket.host"}},
		"http scheme FTP": {
			get(func(h *corev1.HTTPGetAction) { h.Scheme = "FTP" }), []string{probe + "probe.httpGet.scheme"},
		},
		"http without path": {
			get(func(h *corev1.HTTPGetAction) { h.Path = "" }), []string{probe + "probe.httpGet.path"},
		},
		"http host": {
			get(func(h *corev1.HTTPGetAction) { h.Host = "example.com" }), []string{probe + "probe.httpGet.host"},
		},
		"http header": {
			get(func(h *corev1.HTTPGetAction) { h.HTTPHeaders = []corev1.HTTPHeader{{Name: "a b"}} }),
			[]string{probe + "probe.httpGet.httpHeaders[0].name"},
		},
		"grpc port": {
			handler(func(p *corev1.Probe) { p.GRPC = &corev1.GRPCAction{} }), []string{probe + "probe.grpc.port"},
		},
		"policy of Unknown": {first(func(p *v1alpha1.PodContainerProbe) {
			p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{policyOf("Unknown", "a", "b")}
		}), []string{probe + "markerPolicy[0].state"}},
		"policies of one state": {first(func(p *v1alpha1.PodContainerProbe) {
			p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{policyOf("Failed", "a", "b"), policyOf("Failed", "a", "b")}
		}), []string{probe + "markerPolicy[1].state"}},
		"policy without marks": {
			first(func(p *v1alpha1.PodContainerProbe) { p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{{State: "Failed"}} }),
			[]string{probe + "markerPolicy[0].labels"},
		},
		"policy with wrong values": {first(func(p *v1alpha1.PodContainerProbe) {
			p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{{
				State: "Failed", Labels: map[string]string{"a": "b c"}, Annotations: map[string]string{"a b": "c"},
			}}
		}), []string{probe + "markerPolicy[0].annotations", probe + "markerPolicy[0].labels"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := markerOf("shop", "m", "web", execOf("a", "true"))
			c.change(m)
			got := map[string]bool{}
			for _, fault := range podprobe.Validate(m) {
				got[fault.Field] = true
			}
			want := map[string]bool{}
			for _, path := range c.want {
				want[path] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// Acceptance 19.
func TestValidateUpdate(t *testing.T) {
	m := markerOf("shop", "m", "web", execOf("a", "true"))
	other := markerOf("shop", "m", "db", execOf("b", "true"))
	if faults := podprobe.ValidateUpdate(other, m); len(faults) != 1 || faults[0].Field != "spec.selector" {
		t.Errorf("another selector: %v", faults)
	}
	if faults := podprobe.ValidateUpdate(markerOf("shop", "m", "web"), m); faults != nil {
		t.Errorf("other probes: %v", faults)
	}
}

func TestWarnings(t *testing.T) {
	m := markerOf("shop", "m", "web", execOf("a", "true"), execOf("b", "true"))
	m.Spec.Probes[1].PodConditionType = "Ready"
	want := []string{
		"spec.probes[1].podConditionType: condition Ready is not written, because it belongs to the kubelet or to a workload",
	}
	if diff := cmp.Diff(want, podprobe.Warnings(m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever an API server stores is survived, and what is valid is run as it is.
func FuzzMarker(f *testing.F) {
	valid, err := json.Marshal(markerOf("shop", "m", "web", execOf("a", "true"),
		tcpOf("b", "main", intstr.FromString("main-port"))))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(valid))
	f.Add(`{"spec":{"probes":[{},{"name":"#"},{"probe":{"grpc":{"port":-1},"exec":{}}},{"probe":{"tcpSocket":{"port":"x"}}}]}}`)
	f.Add(`{"metadata":{"namespace":"shop","name":"#"},"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]},"probes":null}}`)
	f.Fuzz(func(t *testing.T, text string) {
		m := &v1alpha1.PodProbeMarker{}
		if json.Unmarshal([]byte(text), m) != nil {
			t.Skip()
		}
		pod := podOf("shop", "web-0", web())
		faults := podprobe.Validate(m)
		podprobe.Warnings(m)
		markers := []*v1alpha1.PodProbeMarker{m}
		content := podprobe.Desired(podprobe.Node{Pods: []*corev1.Pod{pod}, Markers: markers})
		if podprobe.Desired(podprobe.Node{Pods: []*corev1.Pod{pod}, Markers: markers, Asked: content.PodProbes}).Changed {
			t.Error("its own content changes")
		}
		if _, err := podprobe.Stamp(pod, markers); err != nil {
			t.Error(err)
		}
		for _, p := range content.PodProbes {
			var states []v1alpha1.ContainerProbeState
			for i := range p.Probes {
				c := podprobe.Container{ID: "c", Running: true}
				memory, _ := podprobe.Memory{}.Look(&p.Probes[i], &c, reportTime)
				memory = memory.Judge(&p.Probes[i], podprobe.Result{}, reportTime)
				states = append(states, v1alpha1.ContainerProbeState{
					Name: p.Probes[i].Name, State: memory.State, Message: memory.Message,
				})
			}
			marking := podprobe.Mark(pod, podprobe.Outcomes(states, markers))
			if len(faults) > 0 {
				continue
			}
			if after := marked(t, pod, marking); podprobe.Mark(after, podprobe.Outcomes(states, markers)).Write() != nil {
				t.Error("there is more to write")
			}
		}
	})
}

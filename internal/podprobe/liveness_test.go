package podprobe_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

func ExampleDetachLiveness() {
	probe := &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}, PeriodSeconds: 5,
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kruise.UsingEnhancedLivenessKey: "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", LivenessProbe: probe}, {Name: "log"}}},
	}
	next, names, err := podprobe.DetachLiveness(pod)
	if err != nil {
		panic(err)
	}
	fmt.Println(names, next.Spec.Containers[0].LivenessProbe == nil)
	fmt.Println(next.Annotations[kruise.ContainerProbeContextKey])
	// Output:
	// [main] true
	// [{"name":"main","livenessProbe":{"tcpSocket":{"port":80},"periodSeconds":5}}]
}

// Cases 14 to 16 of the specification of the pod webhook, and what may not be touched.
func TestDetachLiveness(t *testing.T) {
	http := &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("web")}},
		FailureThreshold: 3,
	}
	exec := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	cases := map[string]struct {
		why        string
		annotation string
		containers []corev1.Container
		want       []string
	}{
		"two of three": {
			"both probes move in the order of the containers", "true",
			[]corev1.Container{{Name: "c1", LivenessProbe: http}, {Name: "c2", LivenessProbe: exec}, {Name: "c3"}},
			[]string{"c1", "c2"},
		},
		"not asked": {
			why:        "a pod without the annotation keeps its probes",
			containers: []corev1.Container{{Name: "c1", LivenessProbe: http}},
		},
		"other": {"only true asks for it", "True", []corev1.Container{{Name: "c1", LivenessProbe: http}}, nil},
		"no probe": {
			why:        "nothing moves where there is no liveness probe",
			annotation: "true",
			containers: []corev1.Container{{Name: "c1", ReadinessProbe: http, StartupProbe: exec}},
		},
		"empty": {"a pod may have no containers", "true", nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{
				Containers: c.containers, InitContainers: []corev1.Container{{Name: "i", LivenessProbe: exec}},
			}}
			pod.Annotations = map[string]string{kruise.UsingEnhancedLivenessKey: c.annotation}
			before := pod.DeepCopy()
			next, names, err := podprobe.DetachLiveness(pod)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, pod); d != "" {
				t.Errorf("the pod was changed: %s", d)
			}
			if d := cmp.Diff(c.want, names); d != "" {
				t.Errorf("%s: %s", c.why, d)
			}
			if len(c.want) == 0 {
				if next != nil {
					t.Errorf("%s: want no change", c.why)
				}
				return
			}
			var probes []kruise.ContainerLivenessProbe
			if err := json.Unmarshal([]byte(next.Annotations[kruise.ContainerProbeContextKey]), &probes); err != nil {
				t.Fatal(err)
			}
			// Put back, the pod is as it was but for the annotation.
			for _, p := range probes {
				for i := range next.Spec.Containers {
					if next.Spec.Containers[i].Name == p.Name {
						next.Spec.Containers[i].LivenessProbe = &p.LivenessProbe
					}
				}
			}
			delete(next.Annotations, kruise.ContainerProbeContextKey)
			if d := cmp.Diff(before, next); d != "" {
				t.Errorf("put back, the pod differs: %s", d)
			}
		})
	}
}

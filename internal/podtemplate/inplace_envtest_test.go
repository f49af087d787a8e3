//go:build envtest

package podtemplate_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// TestUpdatedInPlace updates a pod at a real API server, which accepts each change that a policy allows.
func TestUpdatedInPlace(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "init:1"}},
			Containers: []corev1.Container{{
				Name: "app", Image: "app:1",
				Env: []corev1.EnvVar{{
					Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}},
				}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("1.0"), corev1.ResourceMemory: resource.MustParse("1024Mi"),
				}},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Port: intstr.FromInt32(80),
				}}},
			}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway, MatchLabelKeys: []string{"app"},
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			}},
		},
	}
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.Namespace, pod.Labels[kruise.PodRevisionLabelKey] = "web-0", c.Namespace(t), "0"
	if err := c.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	policy := inplace.Policy{}
	for i, change := range []func(*corev1.PodTemplateSpec){
		func(*corev1.PodTemplateSpec) {},
		func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image = "app:2"
			t.Annotations = map[string]string{"team": "blue"}
		},
	} {
		older, revision := template, fmt.Sprint(i+1)
		template = *template.DeepCopy()
		change(&template)
		if i > 0 {
			diff, err := inplace.Diff(&older, &template, policy)
			if err != nil {
				t.Fatal(i, err)
			}
			a, err := inplace.Next(inplace.Update{Pod: pod, Change: diff, Revision: revision}, policy, time.Now())
			if err != nil || a.Step != inplace.StepChange {
				t.Fatalf("%d: %+v, %v", i, a, err)
			}
			data, err := a.Write.Data()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Client.Patch(t.Context(), pod, client.RawPatch(a.Write.Type, data)); err != nil {
				t.Fatalf("%d: %v: %s", i, err, data)
			}
		}
		if is := pod.Spec.Containers[0].Image; is != template.Spec.Containers[0].Image {
			t.Errorf("%d: the pod has image %s", i, is)
		}
		if is := pod.Annotations["team"]; is != template.Annotations["team"] {
			t.Errorf("%d: the pod has team %q", i, is)
		}
	}
}

package explain

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/inplace"
)

// TestDiffPod names what counts in a pod, and what does not.
func TestDiffPod(t *testing.T) {
	first := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c1", Image: "app:1", Env: []corev1.EnvVar{{
			Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}},
		}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
	}}}
	spread := func(keys ...string) *metav1.LabelSelector {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		for _, key := range keys {
			s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{"web-1"},
			})
		}
		return s
	}
	spreads := func(s *metav1.LabelSelector) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				TopologyKey: "zone", LabelSelector: s, MatchLabelKeys: []string{"hash"},
			}}
			p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
					PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: s.DeepCopy(), MatchLabelKeys: []string{"hash"}},
				}},
			}}
		}
	}
	cases := map[string]struct {
		why      string
		pod      func(*corev1.PodSpec)
		template func(*corev1.PodSpec)
		want     []string
	}{
		"a container": {
			why: "it may be one that the template has dropped",
			pod: func(s *corev1.PodSpec) {
				s.Containers = append(s.Containers, corev1.Container{Name: "injected", Image: "proxy:1"})
			},
			want: []string{"spec.containers[injected]"},
		},
		"a variable": {
			why: "it may be one that the template has dropped",
			pod: func(s *corev1.PodSpec) {
				s.Containers[0].Env = append(s.Containers[0].Env, corev1.EnvVar{Name: "B", Value: "1"})
			},
			want: []string{"spec.containers[c1].env[B]"},
		},
		"a claim": {
			why: "the controller of the pod adds it",
			pod: func(s *corev1.PodSpec) { s.Volumes = append(s.Volumes, corev1.Volume{Name: "data"}) },
		},
		"a mount": {
			why: "a volume that the template has dropped has a mount",
			pod: func(s *corev1.PodSpec) {
				s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/a"}}
			},
			want: []string{"spec.containers[c1].volumeMounts"},
		},
		"amounts": {
			why: "a LimitRange sets them",
			pod: func(s *corev1.PodSpec) { s.Containers[0].Resources.Limits["memory"] = resource.MustParse("1Gi") },
		},
		"gates": {
			why:      "they are gone when the pod is scheduled",
			template: func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}} },
		},
		"label keys": {
			why: "the API server adds the values to the selectors", pod: spreads(spread("hash")), template: spreads(spread()),
		},
		"selectors": {
			why: "another expression counts", pod: spreads(spread("hash", "other")), template: spreads(spread()),
			want: []string{
				"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
				"spec.topologySpreadConstraints",
			},
		},
		"account": {
			why:  "admission sets the default account alone",
			pod:  func(s *corev1.PodSpec) { s.ServiceAccountName, s.DeprecatedServiceAccount = "other", "other" },
			want: []string{"spec.serviceAccount", "spec.serviceAccountName"},
		},
		"pull policy": {
			why: "the image in the pod was another when the default was set",
			pod: func(s *corev1.PodSpec) {
				s.Containers[0].Image, s.Containers[0].ImagePullPolicy = "app", corev1.PullIfNotPresent
			},
			template: func(s *corev1.PodSpec) { s.Containers[0].Image = "app" },
		},
		"never pulled": {
			why:  "this is no default",
			pod:  func(s *corev1.PodSpec) { s.Containers[0].ImagePullPolicy = corev1.PullNever },
			want: []string{"spec.containers[c1].imagePullPolicy"},
		},
		"node": {
			why:      "the template wants another one",
			pod:      func(s *corev1.PodSpec) { s.NodeName = "node-1" },
			template: func(s *corev1.PodSpec) { s.NodeName = "node-2" },
			want:     []string{"spec.nodeName"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: *first.DeepCopy()}
			pod.Labels = map[string]string{"app": "web", "controller-revision-hash": "web-1"}
			to := &corev1.PodTemplateSpec{Spec: *first.DeepCopy()}
			to.Labels = map[string]string{"app": "web"}
			if c.pod != nil {
				c.pod(&pod.Spec)
			}
			if c.template != nil {
				c.template(&to.Spec)
			}
			change, err := diffPod(pod, to, inplace.Policy{})
			var blocked *inplace.BlockedError
			switch {
			case c.want == nil && (err != nil || !change.Empty()):
				t.Errorf("%s: got %v, %v", c.why, change, err)
			case c.want == nil:
			case !errors.As(err, &blocked):
				t.Errorf("%s: got %v, %v", c.why, change, err)
			default:
				var paths []string
				for _, b := range blocked.Blocks {
					paths = append(paths, b.Path)
				}
				if d := cmp.Diff(c.want, paths); d != "" {
					t.Errorf("%s (-want +got):\n%s", c.why, d)
				}
			}
		})
	}
}

package broadcastjob

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

func TestNewPod(t *testing.T) {
	job := newJob(func(j *v1beta1.BroadcastJob) {
		j.Spec.Template.Labels = map[string]string{"app": "check", "broadcastjob-name": "another"}
		j.Spec.Template.Annotations, j.Spec.Template.Finalizers = map[string]string{"a": "b"}, []string{"example.com/hold"}
		j.Spec.Template.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{}, NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"},
					}},
				}}},
			},
		}
	})
	before := job.DeepCopy()
	in := snapshot{job: job, nodes: newNodes("a"), now: epoch()}
	pod := planOf(in).create[0]
	want := metav1.ObjectMeta{
		Namespace: "shop", Name: PodName(job, "a"),
		Labels: map[string]string{
			"app": "check", "broadcastjob-name": "check", "broadcastjob-controller-uid": "uid-check",
		},
		Annotations: map[string]string{"a": "b"}, Finalizers: []string{"example.com/hold"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion:         "apps.kruise.io/v1beta1",
			Kind:               "BroadcastJob",
			Name:               "check",
			UID:                "uid-check",
			Controller:         ptr.To(true),
			BlockOwnerDeletion: ptr.To(true),
		}},
	}
	if diff := cmp.Diff(want, pod.ObjectMeta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pod.Spec.NodeName != "" || eligible.NodeOf(pod) != "a" || pod.Spec.Affinity.PodAntiAffinity == nil {
		t.Errorf("spec %+v", pod.Spec)
	}
	in.bind = true
	bound := planOf(in).create[0]
	if bound.Spec.NodeName != "a" || len(
		bound.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields) >
		0 {
		t.Errorf("bound spec %+v", bound.Spec)
	}
	if diff := cmp.Diff(before, job); diff != "" {
		t.Errorf("the job was changed:\n%s", diff)
	}
}

func TestPodName(t *testing.T) {
	job := newJob()
	names := map[string]bool{}
	for _, node := range []string{"a", "b", strings.Repeat("n", 253)} {
		names[PodName(job, node)] = true
	}
	again := newJob(func(j *v1beta1.BroadcastJob) { j.UID = "uid-again" })
	names[PodName(again, "a")] = true
	if len(names) != 4 {
		t.Errorf("names repeat: %v", names)
	}
	long := newJob(func(j *v1beta1.BroadcastJob) { j.Name = strings.Repeat("x", 51) + "-" + strings.Repeat("y", 11) })
	if name := PodName(long, "a"); len(name) > 63 || strings.Contains(name, "--") ||
		!strings.HasPrefix(name, strings.Repeat("x", 51)+"-") {
		t.Errorf("name %q", name)
	}
}

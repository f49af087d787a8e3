//go:build envtest

package imagepulljob_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
)

// Nodes pull in the order in which the workload that made the job updates its pods.
func TestOrder(t *testing.T) {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	template.Spec.Containers = []corev1.Container{{Name: "main", Image: "web:1"}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	cases := map[string]struct {
		owner func() client.Object
		want  []int
	}{
		"cloneset": {func() client.Object {
			set := &v1beta1.CloneSet{Spec: v1beta1.CloneSetSpec{Template: template, Selector: selector}}
			// Of equal weight, the younger would come first: those made after a second began, which is not the same every time.
			all := &kruise.UpdatePriorityStrategy{}
			for i, pod := range []string{"web-2", "web-0", "web-1"} {
				all.WeightPriority = append(all.WeightPriority, kruise.UpdatePriorityWeightTerm{
					Weight: int32(90 - i), MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"pod": pod}},
				})
			}
			set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{PriorityStrategy: all}
			return set
		}, []int{2, 0, 1, 3}},
		"statefulset": {func() client.Object {
			return &v1beta1.StatefulSet{Spec: v1beta1.StatefulSetSpec{Template: template, Selector: selector}}
		}, []int{3, 2, 1, 0}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := start(t, imagepulljob.Options{})
			b.have(4)
			owner := test.owner()
			owner.SetNamespace(b.Namespace)
			owner.SetName("web")
			if err := b.Client.Create(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				b.pod(fmt.Sprintf("web-%d", i), b.node(i+1), func(p *corev1.Pod) { p.Labels["pod"] = p.Name })
			}
			// It begins when all pods are known.
			job := b.create("ahead", "web:2", parallel(0), func(j *v1beta1.ImagePullJob) {
				j.Spec.Selector, j.Spec.PodSelector = nil, &v1beta1.ImagePullJobPodSelector{LabelSelector: *selector}
				kind := strings.TrimPrefix(fmt.Sprintf("%T", owner), "*v1beta1.")
				j.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind(kind))}
			})
			b.status(job, "4/0/0/0", "job is running, progress 0.0%")
			b.change(job, parallel(1))
			b.status(job, "4/0/4/0", "job has completed")
			var want []string
			for _, i := range test.want {
				want = append(want, b.node(i+1)+" web:2")
			}
			if got := b.nodes.began(); !slices.Equal(got, want) {
				t.Errorf("pulled in the order %q, want %q", got, want)
			}
		})
	}
}

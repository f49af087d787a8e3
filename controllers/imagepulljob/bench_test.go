package imagepulljob

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// nowhere is a queue that drops what is added.
type nowhere struct{ watches.Queue }

func (nowhere) Add(reconcile.Request) {}

// A change of a pod in a namespace with 100 jobs. One job selects the pod.
func BenchmarkPodEvent(b *testing.B) {
	var jobs []*v1beta1.ImagePullJob
	for i := range 100 {
		job := jobNamed(fmt.Sprint(i), "nginx")
		job.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}},
		}
		jobs = append(jobs, job)
	}
	handler := watching(b, jobs...).podEvents()
	before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "7"}}}
	after := before.DeepCopy()
	after.Spec.NodeName = "n"
	b.ReportAllocs()
	for b.Loop() {
		handler.Update(b.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, nowhere{})
	}
}

// A change of a tag on a node that 100 jobs have asked for the image. One job has asked for the tag.
func BenchmarkNodeEvent(b *testing.B) {
	var jobs []*v1beta1.ImagePullJob
	for i := range 100 {
		jobs = append(jobs, jobNamed(fmt.Sprint(i), "nginx:1"))
	}
	before := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}}
	before.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{{
		Tag: "1", OwnerReferences: []corev1.ObjectReference{{UID: "7"}},
	}}}}
	before.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{{
		Tag: "1", Phase: v1beta1.ImagePhasePulling,
	}}}}
	after := before.DeepCopy()
	after.Status.ImageStatuses["nginx"].Tags[0].Phase = v1beta1.ImagePhaseSucceeded
	handler, was, is := watching(b, jobs...).nodeEvents(), rawNode(b, before), rawNode(b, after)
	b.ReportAllocs()
	for i := 2; b.Loop(); i++ {
		is.SetResourceVersion(fmt.Sprint(i))
		handler.Update(b.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, nowhere{})
		was, is = is, was
	}
}

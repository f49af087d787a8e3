package ephemeraljob

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/test/rig/storedtest"
)

// shelf is a cache that lists jobs as they are.
type shelf struct {
	client.Client

	jobs []unstructured.Unstructured
}

func (s *shelf) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	into, is := list.(*unstructured.UnstructuredList)
	if !is {
		return fmt.Errorf("list %T", list)
	}
	into.Items = s.jobs
	return nil
}

// nowhere is a queue that drops what is added.
type nowhere struct{ watches.Queue }

func (nowhere) Add(reconcile.Request) {}

// A change of a pod in a namespace with 100 jobs, while another job has written its counters. One job selects the pod.
func BenchmarkPodEvent(b *testing.B) {
	s := &shelf{}
	for i := range 100 {
		j := &v1alpha1.EphemeralJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Generation: 1, ResourceVersion: "1",
		}}
		j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}
		j.Spec.Template.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "shell", Image: "busybox:1"}},
		}
		s.jobs = append(s.jobs, *storedtest.Raw(b, gvk(), j))
	}
	r, err := New(s, Options{Live: s})
	if err != nil {
		b.Fatal(err)
	}
	r.api.Cached = s
	before := podWith(func(p *corev1.Pod) { p.Labels["app"] = "7" })
	after := podWith(func(p *corev1.Pod) { p.Labels["app"], p.Status.Phase = "7", corev1.PodFailed })
	handler := r.podEvents()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.jobs[i%100].SetResourceVersion(fmt.Sprint(i + 2))
		handler.Update(b.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, nowhere{})
	}
}

package stored

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/test/objects"
)

// A ledger keeps of an answer what the cache would, and leaves the answer as it is.
func TestKept(t *testing.T) {
	var list corev1.PodList
	objects.Recorded(t, "2-updating/pods.yaml", &list)
	for i := range list.Items {
		pod := &list.Items[i]
		before, want := pod.DeepCopy(), pod.DeepCopy()
		LeanPod(want)
		if diff := cmp.Diff(want, kept(pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pod.Name, diff)
		}
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Errorf("%s is another pod (-before +after):\n%s", pod.Name, diff)
		}
	}
}

// What the record of a write costs.
func BenchmarkKept(b *testing.B) {
	var list corev1.PodList
	objects.Recorded(b, "2-updating/pods.yaml", &list)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		kept(&list.Items[i%len(list.Items)])
	}
}

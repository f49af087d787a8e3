package standin_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/test/standin"
)

// A container that takes time to start does so in a new pod and after a change of its image, once for each.
func TestStart(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	kubelet := &standin.Kubelet{Start: 2 * time.Second, Now: func() time.Time { return now }}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	type seen struct {
		Image    string
		Restarts int32
		Ready    bool
	}
	run := func(after time.Duration) seen {
		now = now.Add(after)
		stale := pod.DeepCopy()
		kubelet.Run(pod)
		kubelet.Run(stale)
		if diff := cmp.Diff(pod.Status, stale.Status); diff != "" {
			t.Errorf("the second run from the same status differs (-first +second):\n%s", diff)
		}
		s := pod.Status.ContainerStatuses[0]
		return seen{s.Image, s.RestartCount, s.Ready}
	}
	got := []seen{run(0), run(time.Second), run(time.Second)}
	pod.Spec.Containers[0].Image = "web:2"
	got = append(got, run(time.Second), run(2*time.Second), run(time.Hour))
	want := []seen{
		{"", 0, false}, {"", 0, false}, {"web:1", 0, true}, {"web:1", 0, false}, {"web:2", 1, true}, {"web:2", 1, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

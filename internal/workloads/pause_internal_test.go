package workloads

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPauseOf(t *testing.T) {
	for pods, want := range map[int]time.Duration{
		0: 0, 99: 0, 100: 10 * time.Millisecond, 1000: 100 * time.Millisecond, 10_000: time.Second,
		1_000_000: time.Second,
	} {
		if got := pauseOf(pods); got != want {
			t.Errorf("%d pods: %s, want %s", pods, got, want)
		}
	}
}

// The pause follows from the pods of the last pass, and ends with the workload.
func TestPause(t *testing.T) {
	k, now := &Kit{}, metav1.Now()
	o := &Observation{Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", DeletionTimestamp: &now, // no pass over its pods
	}}}
	o.Active, o.Inactive = make([]*corev1.Pod, 150), make([]*corev1.Pod, 50)
	k.remember(t.Context(), o, &Plan{})
	if got := k.pause(o.Key()); got != 20*time.Millisecond {
		t.Errorf("200 pods: %s", got)
	}
	other := o.Key()
	if other.Namespace = "other"; k.pause(other) != 0 {
		t.Error("a workload of the same name in another namespace pauses")
	}
	k.memory.Forget(o.Key())
	if got := k.pause(o.Key()); got != 0 {
		t.Errorf("the workload is gone: %s", got)
	}
}

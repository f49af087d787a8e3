package lifecycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// Where no kubelet runs, Ready follows from the writes of a Gate.
func TestGateSetsReady(t *testing.T) {
	gate := lifecycle.Gate{Type: "example.com/in-service", SetReady: true}
	for name, c := range map[string]struct {
		containers, other corev1.ConditionStatus
		want              corev1.ConditionStatus
	}{
		"ready":                        {containers: corev1.ConditionTrue, want: corev1.ConditionTrue},
		"a container is not ready":     {containers: corev1.ConditionFalse, want: corev1.ConditionFalse},
		"the kubelet has not reported": {want: corev1.ConditionFalse},
		"another gate is closed": {
			containers: corev1.ConditionTrue, other: corev1.ConditionFalse, want: corev1.ConditionFalse,
		},
		"another gate is open": {
			containers: corev1.ConditionTrue, other: corev1.ConditionTrue, want: corev1.ConditionTrue,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := gated(inService("True", "", "[]"), corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			if c.containers != "" {
				pod.Status.Conditions = append(pod.Status.Conditions,
					corev1.PodCondition{Type: corev1.ContainersReady, Status: c.containers})
			} else {
				pod.Status.Conditions[1].Status = corev1.ConditionFalse
			}
			if c.other != "" {
				pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates,
					corev1.PodReadinessGate{ConditionType: kruise.InPlaceUpdateReady})
				pod.Status.Conditions = append(pod.Status.Conditions,
					corev1.PodCondition{Type: kruise.InPlaceUpdateReady, Status: c.other})
			}
			w, err := gate.Hold(pod, "me", "update", time.Unix(1, 0))
			if err != nil {
				t.Fatal(err)
			}
			pod = sent(t, pod, w)
			if got := lifecycle.ConditionOf(pod, corev1.PodReady).Status; got != corev1.ConditionFalse {
				t.Errorf("held: Ready is %s", got)
			}
			if w, err = gate.Release(pod, "me", "update", time.Unix(2, 0)); err != nil {
				t.Fatal(err)
			}
			pod = sent(t, pod, w)
			if got := lifecycle.ConditionOf(pod, corev1.PodReady).Status; got != c.want {
				t.Errorf("released: Ready is %s, want %s", got, c.want)
			}
			if w, err := gate.Release(pod, "me", "update", time.Unix(3, 0)); w != nil || err != nil {
				t.Errorf("a second release writes %v, %v", w, err)
			}
		})
	}
}

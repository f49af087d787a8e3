package launch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/launch"
)

func TestPending(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want []int64
	}{
		"one is ready":  {with(waiting("p_3", "p_5", "p_0"), ready, "a"), []int64{0, 5}},
		"none is known": {waiting("p_3", "p_5", "p_3"), []int64{3, 3, 5}},
		"all are ready": {with(waiting("p_3", "p_5"), ready, "a", "b"), nil},
		"another variable": {env(newPod("a"), 0, func() corev1.EnvVar {
			v := wait("web", "p_1")
			v.Name = "MINE"
			return v
		}()), nil},
		"another's name": {env(newPod("a"), 0, wait("other", "p_1")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, launch.Pending(c.pod, launch.Policy{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConcerns(t *testing.T) {
	containersReady := func(p *corev1.Pod, is corev1.ConditionStatus) *corev1.Pod {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: is}}
		return p
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"new: nothing is there":                                     {five(), true},
		"all ready: no container waits":                             {with(five(), ready, "a", "b", "c", "e", "f"), false},
		"containers ready: the kubelet says so":                     {containersReady(five(), corev1.ConditionTrue), false},
		"complete: no container waits":                              {done(five()), false},
		"complete and blocked: something is missing that was there": {done(with(five(), blocked, "a")), true},
		"complete, no barrier: what is missing is no barrier":       {done(with(newPod("a"), blocked, "a")), false},
		"not complete: only true is":                                {annotated(five(), completedKey, "false"), true},
		"terminating":                                               {terminating(five()), false},
		"over":                                                      {phase(five(), corev1.PodFailed), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := launch.Concerns(c.pod, launch.Policy{}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestUnmarked(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"waits":       {five(), true},
		"is up":       {with(five(), ready, "a", "b", "c", "e", "f"), true},
		"complete":    {done(five()), false},
		"no barrier":  {newPod("a", "b"), false},
		"terminating": {terminating(five()), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := launch.Incomplete(c.pod, launch.Policy{}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

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
		"no barrier":    {newPod("a"), nil},
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
		why  string
		pod  *corev1.Pod
		want bool
	}{
		"new":                  {"nothing is there", five(), true},
		"all ready":            {"nobody waits", with(five(), ready, "a", "b", "c", "e", "f"), false},
		"one is not":           {"", with(five(), ready, "a", "b", "c", "e"), true},
		"containers ready":     {"the kubelet says so", containersReady(five(), corev1.ConditionTrue), false},
		"containers not ready": {"", containersReady(five(), corev1.ConditionFalse), true},
		"complete":             {"nobody waits any more", done(five()), false},
		"complete and blocked": {"something is missing that was there", done(with(five(), blocked, "a")), true},
		"complete, no barrier": {"what is missing is no barrier", done(with(newPod("a"), blocked, "a")), false},
		"not complete":         {"only true is", annotated(five(), completedKey, "false"), true},
		"no barrier":           {"", newPod("a", "b"), false},
		"terminating":          {"", terminating(five()), false},
		"over":                 {"", phase(five(), corev1.PodFailed), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := launch.Concerns(c.pod, launch.Policy{}); got != c.want {
				t.Errorf("%t, want %t: %s", got, c.want, c.why)
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

func TestDoubts(t *testing.T) {
	for name, c := range map[string]struct {
		why     string
		pod     *corev1.Pod
		barrier *corev1.ConfigMap
		want    bool
	}{
		"no barrier":   {"that is no memory", with(five(), blocked, "b"), nil, false},
		"its turn":     {"the kubelet should see the key", with(five(), blocked, "a", "b"), barrier("u1", "p_5"), true},
		"not its turn": {"it waits, as it should", with(five(), blocked, "a"), barrier("u1", "p_5"), false},
		"another reason": {"it crashes", with(five(), func(s *corev1.ContainerStatus) {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		}, "b"), barrier("u1", "p_5"), false},
		"a former one": {"it is replaced anyway", with(five(), blocked, "b"), barrier("u0", "p_5"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := launch.MayBeStale(launch.Input{Pod: c.pod, Barrier: c.barrier}); got != c.want {
				t.Errorf("%t, want %t: %s", got, c.want, c.why)
			}
		})
	}
}

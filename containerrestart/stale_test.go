package containerrestart_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/containerrestart"
)

func TestStale(t *testing.T) {
	none := confHash()
	fine := []func(*corev1.Pod){owned, told(meta("app", 0, 7, none), meta("log", 0, 8, none))}
	pod := func(more ...func(*corev1.Pod)) *corev1.Pod { return newPod(append(slices.Clip(fine), more...)...) }
	conf := func(value string) *corev1.Pod {
		return newPod(owned, fed(0, "conf"), annotated("conf", value),
			told(meta("app", 0, 7, confHash("1")), meta("log", 0, 8, none)))
	}
	cases := map[string]struct {
		why     string
		was, is *corev1.Pod
		env     bool
		want    bool
	}{
		"nothing changed":         {"all is reported", pod(), pod(), true, false},
		"seen for the first time": {"all is reported", nil, pod(), true, false},
		"old pod, untold":         {"a daemon that starts leaves it alone", nil, newPod(owned), true, false},
		"old pod, half told":      {"somebody asked before", nil, newPod(owned, told(meta("app", 0, 7, none))), true, true},
		"untold":                  {"now it has changed", newPod(owned), newPod(owned), true, true},
		"nobody's":                {"nobody asks", newPod(), newPod(), true, false},
		"more containers": {
			why:  "a sidecar came",
			was:  pod(func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }),
			is:   pod(),
			want: true,
		},
		"another container": {
			why:  "it restarted",
			was:  pod(),
			is:   pod(func(p *corev1.Pod) { p.Status.ContainerStatuses[1] = running("log", 1, 5) }),
			want: true,
		},
		"no container yet": {
			why: "one with no ID does not count",
			was: pod(),
			is: newPod(owned, func(p *corev1.Pod) { p.Status.ContainerStatuses[1].ContainerID = "" },
				told(meta("app", 0, 7, none))),
			env: true,
		},
		"one too many": {
			why:  "it describes one that is gone",
			was:  pod(),
			is:   newPod(owned, func(p *corev1.Pod) { p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1] }, fine[1]),
			want: true,
		},
		"environment unknown": {
			why:  "it has to be read",
			was:  pod(),
			is:   newPod(owned, told(meta("app", 0, 7, 0), meta("log", 0, 8, none))),
			env:  true,
			want: true,
		},
		"environment, gate off": {
			why: "it is not compared", was: pod(), is: newPod(owned, told(meta("app", 0, 7, 0), meta("log", 0, 8, none))),
		},
		"environment differs":  {"the container has to restart", conf("2"), conf("2"), true, true},
		"environment is back":  {"a restart may be under way", conf("2"), conf("1"), true, true},
		"environment is right": {"nothing to do", conf("1"), conf("1"), true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := containerrestart.Stale(tc.was, tc.is, tc.env); got != tc.want {
				t.Errorf("%s: got %v", tc.why, got)
			}
		})
	}
}

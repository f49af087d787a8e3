package rollout_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

// converge makes passes until one has nothing to write, with a kubelet that is fast and never fails. It returns the
// pods and the status.
func converge(t *testing.T, set *v1beta1.SidecarSet, pods []*corev1.Pod) ([]*corev1.Pod, v1beta1.SidecarSetStatus) {
	t.Helper()
	for count := 0; ; count++ {
		pass, err := rollout.Plan(input(set, pods...))
		if err != nil {
			t.Fatal(err)
		}
		plan := pass.Result()
		if len(plan.Updates) == 0 {
			return pods, plan.Status
		}
		if count > 20 {
			t.Fatal("the passes do not end")
		}
		for _, c := range plan.Updates {
			pod := finished(pass, c)[c.Pod.UID]
			for name := range imagesOf(c) {
				restart(pod, name)
			}
			pods[slices.Index(pods, c.Pod)] = readied(pod)
		}
	}
}

// The user edits a set while its pods follow it.
func TestEdits(t *testing.T) {
	type edit struct {
		changes []setChange
		updated int32
	}
	canary := func(pod *corev1.Pod) { pod.Labels["canary"] = "yes" }
	unselective := func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Selector = nil }
	second := image("mesh:2")
	cases := map[string]struct {
		created []setChange
		edits   []edit
		// images of both pods at the end of the first edit.
		images []string
	}{
		"paused halfway, and resumed": {
			[]setChange{paused}, []edit{
				{[]setChange{second, resumed, partition("1")}, 1},
				{[]setChange{paused, partition("0")}, 1},
				{[]setChange{resumed}, 2},
			}, nil,
		},
		"only selected pods, and all without a selector": {
			[]setChange{only("canary", "yes")},
			[]edit{{[]setChange{second}, 1}, {[]setChange{unselective}, 2}},
			[]string{"mesh:2", "mesh:1"},
		},
		"a partition holds one back, until there is none": {
			[]setChange{partition("50%"), maxUnavailable("2")},
			[]edit{{[]setChange{second}, 1}, {[]setChange{partition("")}, 2}},
			nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := sidecarSet("s", append([]setChange{cold("mesh", "mesh:1")}, c.created...)...)
			pods := []*corev1.Pod{podOf("canary", set), podOf("plain", set)}
			canary(pods[0])
			pods, status := converge(t, set, pods)
			if status.MatchedPods != 2 || status.UpdatedPods != 2 || status.ReadyPods != 2 || status.UpdatedReadyPods != 2 {
				t.Fatalf("before all edits: %+v", status)
			}
			for i, e := range c.edits {
				set = edited(set, e.changes...)
				pods, status = converge(t, set, pods)
				if status.MatchedPods != 2 || status.UpdatedPods != e.updated || status.ReadyPods != 2 ||
					status.UpdatedReadyPods != e.updated {
					t.Errorf("edit %d: %+v, want %d updated", i, status, e.updated)
				}
				var images []string
				for _, pod := range pods {
					images = append(images, pod.Spec.Containers[indexOf(pod, "mesh")].Image)
				}
				if i == 0 && c.images != nil && !slices.Equal(images, c.images) {
					t.Errorf("edit %d: the pods have %v, want %v", i, images, c.images)
				}
			}
		})
	}
}

func indexOf(pod *corev1.Pod, name string) int {
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if at < 0 {
		panic(fmt.Sprintf("pod %s has no container %s", pod.Name, name))
	}
	return at
}

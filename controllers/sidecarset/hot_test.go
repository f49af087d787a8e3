package sidecarset_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
)

// TestHotUpgradeBadImage: an image that does not run gets no further than the budget, and a good one takes over from
// it. What cannot change in a pod leaves pods as they are.
func TestHotUpgradeBadImage(t *testing.T) {
	m := newModel(t, sidecarset.Options{}, nil)
	set := m.create("mesh", hot)
	m.fleet(2, set)
	m.counted(set, 2, 2, 2, 2)
	m.change(set, image("mesh:broken"))
	m.counted(set, 2, 1, 1, 0)
	m.Still()
	m.counted(set, 2, 1, 1, 0)
	m.change(set, image("mesh:2"))
	m.works("mesh", "mesh-2", "mesh:2")
	m.counted(set, 2, 2, 2, 2)
	m.change(set, environment("1"))
	m.counted(set, 2, 0, 2, 0)
}

// TestHotUpgradeTakenBack: a spec that goes back from an image that does not run.
func TestHotUpgradeTakenBack(t *testing.T) {
	m := newModel(t, sidecarset.Options{}, nil)
	set := m.create("mesh", hot)
	m.fleet(2, set)
	m.counted(set, 2, 2, 2, 2)
	m.change(set, image("mesh:broken"))
	m.counted(set, 2, 1, 1, 0)
	m.change(set, image("mesh:1"))
	m.works("mesh", "mesh-1", "mesh:1")
	m.counted(set, 2, 2, 2, 2)
	for _, pod := range m.pods() {
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name == "mesh-1" && s.RestartCount != 0 {
				t.Errorf("%s/%s, which worked all the time, restarted", pod.Name, s.Name)
			}
		}
	}
}

// TestHotUpgradePaused: one that has begun comes to its end.
func TestHotUpgradePaused(t *testing.T) {
	m := newModel(t, sidecarset.Options{}, nil)
	set := m.create("mesh", hot)
	pod := m.pod("pod-0", []*v1beta1.SidecarSet{set}, func(p *corev1.Pod) {
		p.Annotations = map[string]string{unready: ""}
	})
	m.counted(set, 1, 1, 0, 0)
	m.change(set, image("mesh:2"))
	m.until(func() error { // it is updated though not ready, and waits then for the new container to be
		if m.get(pod); pod.Spec.Containers[1].Image != "mesh:2" {
			return fmt.Errorf("it has %s", pod.Spec.Containers[1].Image)
		}
		return nil
	})
	m.change(set, paused(true), notUpdate)
	m.works("mesh", "mesh-2", "mesh:2")
}

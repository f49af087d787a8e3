//go:build envtest

package sidecarset_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
)

// works waits until in all pods one container works and the other is empty.
func (b *bench) works(sidecar, name, image string) {
	b.Helper()
	other := sidecar + "-1"
	if name == other {
		other = sidecar + "-2"
	}
	b.Until(func() error {
		for _, pod := range b.pods() {
			working, is := map[string]string{}, map[string]string{}
			if err := json.Unmarshal([]byte(pod.Annotations[pub.SidecarSetWorkingHotUpgradeContainerKey]), &working); err != nil {
				return err
			}
			for _, c := range pod.Spec.Containers {
				is[c.Name] = c.Image
			}
			if working[sidecar] != name || is[name] != image || is[other] != "empty:1" {
				return fmt.Errorf("%s: %v of %v", pod.Name, working, is)
			}
		}
		return nil
	})
}

// TestHotUpgrade: the idle container of each pair gets the new image and takes over, and the other becomes empty; the next
// time it is the other way round.
func TestHotUpgrade(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", hot)
	b.fleet(2, set)
	b.counted(set, 2, 2, 2, 2)
	b.works("mesh", "mesh-1", "mesh:1")
	b.change(set, image("mesh:2"))
	b.works("mesh", "mesh-2", "mesh:2")
	b.counted(set, 2, 2, 2, 2)
	for _, pod := range b.pods() {
		got := []string{
			pod.Annotations[pub.SidecarSetVersionKeyPrefix+"mesh-1"], pod.Annotations[pub.SidecarSetVersionAltKeyPrefix+"mesh-2"],
		}
		if diff := cmp.Diff([]string{"0", "0"}, got); diff != "" {
			t.Errorf("%s: versions (-want +got):\n%s", pod.Name, diff)
		}
		if v := pod.Annotations[pub.SidecarSetVersionKeyPrefix+"mesh-2"]; v == "0" || v == "" {
			t.Errorf("%s: the new container has version %q", pod.Name, v)
		}
	}
	if n := b.events("ResetContainerSucceed"); n == 0 {
		t.Error("nobody is told that a container was reset")
	}
	b.change(set, image("mesh:3"))
	b.works("mesh", "mesh-1", "mesh:3")
	b.counted(set, 2, 2, 2, 2)
}

// TestHotUpgradeBadImage: an image that does not run gets no further than the budget, and a good one takes over from it. What
// cannot change in a pod leaves pods as they are.
func TestHotUpgradeBadImage(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", hot)
	b.fleet(2, set)
	b.counted(set, 2, 2, 2, 2)
	b.change(set, image("mesh:broken"))
	b.counted(set, 2, 1, 1, 0)
	b.Still()
	b.counted(set, 2, 1, 1, 0)
	b.change(set, image("mesh:2"))
	b.works("mesh", "mesh-2", "mesh:2")
	b.counted(set, 2, 2, 2, 2)
	b.change(set, environment("1"))
	b.counted(set, 2, 0, 2, 0)
}

// TestHotUpgradeTakenBack: a spec that goes back from an image that does not run.
func TestHotUpgradeTakenBack(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", hot)
	b.fleet(2, set)
	b.counted(set, 2, 2, 2, 2)
	b.change(set, image("mesh:broken"))
	b.counted(set, 2, 1, 1, 0)
	b.change(set, image("mesh:1"))
	b.works("mesh", "mesh-1", "mesh:1")
	b.counted(set, 2, 2, 2, 2)
	for _, pod := range b.pods() {
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name == "mesh-1" && s.RestartCount != 0 {
				t.Errorf("%s/%s, which worked all the time, restarted", pod.Name, s.Name)
			}
		}
	}
}

// TestHotUpgradePaused: one that has begun comes to its end.
func TestHotUpgradePaused(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", hot)
	pod := b.pod("pod-0", []*v1beta1.SidecarSet{set}, func(p *corev1.Pod) { p.Annotations = map[string]string{unready: ""} })
	b.counted(set, 1, 1, 0, 0)
	b.change(set, image("mesh:2"))
	b.Until(func() error { // it is updated though not ready, and waits then for the new container to be
		if b.get(pod); pod.Spec.Containers[1].Image != "mesh:2" {
			return fmt.Errorf("it has %s", pod.Spec.Containers[1].Image)
		}
		return nil
	})
	b.change(set, paused(true), notUpdate)
	b.works("mesh", "mesh-2", "mesh:2")
}

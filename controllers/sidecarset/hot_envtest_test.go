//go:build envtest

package sidecarset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
)

// TestHotUpgrade: the idle container of each pair gets the new image and takes over, and the other becomes empty; the
// next time it is the other way round.
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
			pod.Annotations[kruise.SidecarSetVersionKeyPrefix+"mesh-1"],
			pod.Annotations[kruise.SidecarSetVersionAltKeyPrefix+"mesh-2"],
		}
		if diff := cmp.Diff([]string{"0", "0"}, got); diff != "" {
			t.Errorf("%s: versions (-want +got):\n%s", pod.Name, diff)
		}
		if v := pod.Annotations[kruise.SidecarSetVersionKeyPrefix+"mesh-2"]; v == "0" || v == "" {
			t.Errorf("%s: the new container has version %q", pod.Name, v)
		}
	}
	if n := b.events("ResetContainerSucceed"); n == 0 {
		t.Error("no event reports that a container was reset")
	}
	b.change(set, image("mesh:3"))
	b.works("mesh", "mesh-1", "mesh:3")
	b.counted(set, 2, 2, 2, 2)
}

//go:build envtest

package sidecarset_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
)

// TestRecreatedSet: a set that comes back under its name takes its pods over, and has a history of its own beside what
// is left of the former.
func TestRecreatedSet(t *testing.T) {
	b := start(t, sidecarset.Options{})
	former := b.create("mesh")
	b.fleet(2, former)
	b.counted(former, 2, 2, 2, 2)
	old := b.revisions(former)[0]
	if err := b.Client.Delete(t.Context(), former); err != nil {
		t.Fatal(err)
	}
	set := b.create("mesh")
	b.counted(set, 2, 2, 2, 2)
	if set.Status.LatestRevision == old.Name || *set.Status.CollisionCount != 1 {
		t.Errorf("it goes by the revision of the former set: %+v", set.Status)
	}
	b.change(set, image("mesh:2"))
	b.counted(set, 2, 2, 2, 2)
	for _, rev := range b.revisions(set) {
		if owner := metav1.GetControllerOf(rev); (rev.Name == old.Name) != (owner.UID == former.UID) {
			t.Errorf("%s is of %s", rev.Name, owner.UID)
		}
	}
	b.runs("mesh=mesh:2", "mesh=mesh:2")
}

// TestUnfitVersion: a set of which no revision can be made, because no webhook reviewed it, is reported once, and is
// reconciled when it is mended.
func TestUnfitVersion(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", version("no label"))
	told := func() error {
		if n := b.events("InvalidSpec"); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	}
	b.Until(told)
	b.fleet(1, set)
	b.Still()
	if err := told(); err != nil {
		t.Error(err)
	}
	b.Until(func() error { // events of the pods may be late
		b.Asked()
		b.Still()
		if asked := b.Asked(); len(asked) > 0 {
			return fmt.Errorf("nothing has changed, and it asks %v", asked)
		}
		return nil
	})
	b.change(set, version("a-label"))
	b.counted(set, 1, 1, 1, 1)
	if revs := b.revisions(set); len(revs) != 1 || revs[0].Labels[v1beta1.SidecarSetCustomVersionLabel] != "a-label" {
		t.Errorf("the history is %v", revs)
	}
}

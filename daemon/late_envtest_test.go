//go:build envtest

package daemon

import (
	"context"
	"fmt"
	"testing"

	"github.com/kruisekit/kruisekit/test/cluster"
)

// A node may join before the definitions of a fresh install are there.
func TestKindsInstalledAfterTheStart(t *testing.T) {
	c, n := cluster.Start(t, cluster.Options{Private: true}), node(t, "node-a")
	o := Options{LeftOut: &LeftOut{}}
	mgr := newManager(t, c, n.Name, o)
	if err := AddToManager(t.Context(), mgr, n, o); err != nil {
		t.Fatal(err)
	}
	checked, err := Checks(t.Context(), mgr, n, o)
	if err != nil {
		t.Fatal(err)
	}
	late := []string{"nodeImageInformerSynced", "crrInformerSynced", "nodePodProbeInformerSynced"}
	for _, name := range late {
		if checked[name] == nil || checked[name](nil) == nil {
			t.Errorf("without its kind: %s is no error", name)
		}
	}
	run(t, mgr)
	if err := c.InstallCRDs(t.Context(), "../config/crd/bases"); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, func(context.Context) error {
		if names := o.LeftOut.Names(); len(names) > 0 {
			return fmt.Errorf("%v are left out", names)
		}
		for _, name := range late {
			if err := checked[name](nil); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

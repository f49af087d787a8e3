package uniteddeployment_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// specs returns the UIDs and the generations of the workloads by subset.
func (m *model) specs(u *v1beta1.UnitedDeployment) map[string]string {
	specs := map[string]string{}
	for _, child := range m.children(u) {
		specs[child.Subset] = fmt.Sprint(child.Object.GetUID(), "/", child.Object.GetGeneration())
	}
	return specs
}

// A new leader whose list of UnitedDeployments is older than its lists of workloads undoes nothing that the user has
// asked for since. It reads the object once past the cache, and only where it would do harm otherwise.
func TestNewLeaderWithOlderObject(t *testing.T) {
	zoneAdded := func(u *v1beta1.UnitedDeployment) {
		u.Spec.Topology.Subsets = append(u.Spec.Topology.Subsets, inZone("c"))
	}
	for name, c := range map[string]struct {
		why    string
		change []change
	}{
		"zone added": {"the workload of the zone stays", []change{zoneAdded, scaled(6)}},
		"updated":    {"no workload goes back to the template before", []change{image("web:2")}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			u := m.create("web", 4, "a,b")
			m.Still()
			if reads := m.Live.Reads(); slices.Contains(reads, "get UnitedDeployment metadata") {
				t.Errorf("workloads are created after the reads %v", reads)
			}
			earlier := m.Server.Snapshot()
			m.change(u, c.change...)
			m.Still()
			picture, specs := m.picture(u), m.specs(u)
			m.Live.Reads()
			cache := m.Behind(earlier)
			m.restart(cache) // another replica leads
			for range 5 {
				m.Reconcile()
				if got := m.picture(u); got != picture || !maps.Equal(specs, m.specs(u)) {
					t.Fatalf("%s: %s became %s", c.why, picture, got)
				}
			}
			cache.Thaw()
			m.Still()
			if got := m.picture(u); got != picture || !maps.Equal(specs, m.specs(u)) {
				t.Errorf("%s: %s became %s", c.why, picture, got)
			}
			m.change(u, scaled(2))
			m.Still()
			reads := slices.DeleteFunc(m.Live.Reads(), func(read string) bool { return read != "get UnitedDeployment metadata" })
			if len(reads) != 1 || m.picture(u) == picture {
				t.Errorf("%d reads of the object past the cache, want 1; scaled in to %s", len(reads), m.picture(u))
			}
		})
	}
}

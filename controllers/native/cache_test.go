package native_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/internal/apiserver"
	"github.com/kruisekit/kruisekit/test/objects"
)

// A new leader may see a set as it was before the last rollout. It reads the set past the cache once before it changes
// a pod, and does not take the rollout back.
func TestNewLeaderWithOlderSet(t *testing.T) {
	t.Run("StatefulSet", func(t *testing.T) {
		m := newModel(t, native.Options{})
		m.Still()
		earlier := m.Server.Snapshot()
		m.change(image("2"))
		m.Still()
		leads(t, m.Model, "StatefulSet", func() *apiserver.Lagging {
			cache := m.Behind(earlier)
			m.restart(cache)
			return cache
		})
	})
	t.Run("Deployment", func(t *testing.T) {
		m := newDeployed(t)
		m.change(func(d *appsv1.Deployment) { d.Spec.Paused = true }) // by its user
		m.Still()
		earlier := m.Server.Snapshot()
		m.change(tag("2"))
		m.Still()
		leads(t, m.Model, "Deployment", func() *apiserver.Lagging {
			cache := m.Behind(earlier)
			m.restart(cache)
			return cache
		})
	})
}

// leads has another replica lead, whose cache catches up after some passes.
func leads(t *testing.T, m *objects.Model, kind string, another func() *apiserver.Lagging) {
	t.Helper()
	versions := func() (all []string) {
		for _, pod := range m.Pods() {
			all = append(all, pod.Name+" "+pod.ResourceVersion)
		}
		return all
	}
	before := versions()
	m.Live.Reads()
	cache := another()
	for range 5 {
		m.Reconcile()
		m.RunPods()
	}
	cache.Thaw()
	m.Still()
	if after := versions(); !slices.Equal(before, after) {
		t.Errorf("pods %v, want %v", after, before)
	}
	if reads := m.Live.Reads(); !slices.Equal(reads, []string{"get " + kind + " metadata"}) {
		t.Errorf("reads past the cache: %v, want one", reads)
	}
}

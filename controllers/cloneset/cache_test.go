package cloneset_test

import (
	"maps"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// A new leader whose list of sets is older than its list of pods undoes nothing that the user has asked for since. It
// reads the set once past the cache, and only where it would do harm otherwise.
func TestNewLeaderWithOlderSet(t *testing.T) {
	for name, c := range map[string]struct {
		why    string
		change func(*v1beta1.CloneSet)
	}{
		"scaled out": {"no pod is deleted, and no claim with it", func(s *v1beta1.CloneSet) { *s.Spec.Replicas = 5 }},
		"updated":    {"no pod is marked, to go back to the revision before", image("web:2")},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, cloneset.Options{})
			set := m.create("web", 3, withClaims)
			m.eventually(set, settled)
			if reads := m.Live.Reads(); slices.Contains(reads, "get CloneSet metadata") {
				t.Errorf("pods are created after the reads %v", reads)
			}
			earlier := m.Server.Snapshot()
			m.change(set, c.change)
			m.eventually(set, settled)
			m.Still()
			before, claims := uids(m.pods(set)), claimNames(m.claims())
			m.Live.Reads()
			cache := m.Behind(earlier)
			m.start(cloneset.Options{}, func(client.WithWatch) client.WithWatch { return cache }) // another replica leads
			for range 5 {
				m.Reconcile()
				m.RunPods()
			}
			cache.Thaw()
			m.eventually(set, settled)
			for _, pod := range m.pods(set) {
				if _, marked := pod.Labels[kruise.SpecifiedDeleteKey]; marked {
					t.Errorf("%s: pod %s is marked", c.why, pod.Name)
				}
			}
			if after := uids(m.pods(set)); !maps.Equal(before, after) || !slices.Equal(claims, claimNames(m.claims())) {
				t.Errorf("%s: pods %v became %v, claims %v became %v", c.why, before, after, claims, claimNames(m.claims()))
			}
			m.scale(set, 2)
			m.eventually(set, settled)
			if reads := m.Live.Reads(); !slices.Equal(reads, []string{"get CloneSet metadata"}) {
				t.Errorf("reads past the cache: %v, want one", reads)
			}
		})
	}
}

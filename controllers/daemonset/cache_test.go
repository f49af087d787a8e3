package daemonset_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// A pod that the reconciler has deleted, and that the cache shows as before, is no failure.
func TestDeletedBehindCache(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(1))
	lagging, catchUp := m.FrozenPods()
	m.restart(lagging)
	m.change(set, image("agent:2"))
	for range 3 {
		m.Reconcile()
	}
	if m.look(set); len(m.Server.Events(set, "FailedCreate")) > 0 || len(set.Status.Conditions) > 0 ||
		m.picture() != "n1:1*" {
		t.Errorf("events %v, conditions %v, pods %s",
			m.Server.Events(set, "FailedCreate"), set.Status.Conditions, m.picture())
	}
	catchUp()
	m.becomes(set, "n1:2")
	if m.look(set); len(m.Server.Events(set, "FailedCreate")) > 0 {
		t.Errorf("events %v", m.Server.Events(set, "FailedCreate"))
	}
}

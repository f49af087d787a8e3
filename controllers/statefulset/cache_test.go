package statefulset_test

import (
	"fmt"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
)

// A pod that the reconciler has deleted, and that the cache shows as before, is no failure.
func TestDeletedBehindCache(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 1)
	ready := func() error {
		if m.look(set); set.Status.UpdatedReadyReplicas != 1 || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	}
	m.Eventually(ready)
	lagging, catchUp := m.FrozenPods()
	m.restart(lagging)
	m.change(set, func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "web:2" })
	for range 3 {
		m.Reconcile()
	}
	if m.look(set); len(m.Server.Events(set, "FailedCreate")) > 0 || len(set.Status.Conditions) > 0 ||
		m.pod(set, 0).DeletionTimestamp == nil {
		t.Errorf("events %v, conditions %v", m.Server.Events(set, "FailedCreate"), set.Status.Conditions)
	}
	catchUp()
	m.Eventually(ready)
	if events := m.Server.Events(set, "FailedCreate"); len(events) > 0 {
		t.Errorf("events %v", events)
	}
}

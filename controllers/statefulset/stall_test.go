package statefulset

import (
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kruisekit/kruisekit/internal/workloads"
)

// A rollout whose partition is reached waits for the user, and does not stand still.
func TestPartitionIsNoStall(t *testing.T) {
	m := newModel(t, Options{})
	set := m.create("web", 2, partition(1))
	m.becomes(set, "0:1 1:1")
	m.change(set, withImage("web:2"))
	m.becomes(set, "0:1 1:2")
	m.Advance(time.Hour)
	m.Idle()
	m.Look(set)
	stalled := func(c appsv1.StatefulSetCondition) bool { return c.Type == workloads.Stalled }
	if slices.ContainsFunc(set.Status.Conditions, stalled) {
		t.Errorf("conditions %+v", set.Status.Conditions)
	}
}

// unless returns an error where a condition is not met.
func unless(met bool) error {
	if met {
		return nil
	}
	return errors.New("not yet")
}

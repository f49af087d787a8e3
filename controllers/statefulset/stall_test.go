package statefulset_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// A set whose pod does not become ready reports that after a minute, in one write, and takes it back when the pod is
// ready.
func TestStalled(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 2)
	m.becomes(set, "0:1 1:1")
	stalled := func() *appsv1.StatefulSetCondition {
		m.look(set)
		of := func(c appsv1.StatefulSetCondition) bool { return c.Type == workloads.Stalled }
		if i := slices.IndexFunc(set.Status.Conditions, of); i >= 0 {
			return &set.Status.Conditions[i]
		}
		return nil
	}
	m.edit(m.pod(set, 1), `{"annotations":{"`+unready+`":"true"}}`)
	m.Still()
	if c := stalled(); c != nil {
		t.Errorf("reported at once: %+v", c)
	}
	since := m.Now()
	m.eventually(set, func(*v1beta1.StatefulSet) error { return unless(stalled() != nil) })
	c := stalled()
	if m.Now().Sub(since) < workloads.StalledAfter-time.Second {
		t.Errorf("reported after %s", m.Now().Sub(since))
	}
	if c.Status != corev1.ConditionUnknown || c.Reason != "NotAvailable" || c.Message == "" ||
		c.LastTransitionTime.IsZero() {
		t.Fatalf("after a minute: %+v", c)
	}
	m.idle()
	before := *set.Status.DeepCopy()
	m.edit(m.pod(set, 1), `{"annotations":{"`+unready+`":null}}`)
	m.eventually(set, func(*v1beta1.StatefulSet) error { return unless(stalled() == nil) })
	if before.Replicas != set.Status.Replicas || before.UpdateRevision != set.Status.UpdateRevision {
		t.Errorf("the condition changes other fields: %+v, %+v", before, set.Status)
	}
}

// A rollout whose partition is reached waits for the user, and does not stand still.
func TestPartitionIsNoStall(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 2, partition(1))
	m.becomes(set, "0:1 1:1")
	m.change(set, image("web:2"))
	m.becomes(set, "0:1 1:2")
	m.Advance(time.Hour)
	m.idle()
	m.look(set)
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

package daemonset_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// A rollout that waits for a pod reports that after a minute, in one write, and takes it back when the pod is ready.
func TestStalled(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create(unavailable("1"))
	m.eventually(set, settled(2))
	stalled := func() *appsv1.DaemonSetCondition {
		m.Look(set)
		of := func(c appsv1.DaemonSetCondition) bool { return c.Type == workloads.Stalled }
		if i := slices.IndexFunc(set.Status.Conditions, of); i >= 0 {
			return &set.Status.Conditions[i]
		}
		return nil
	}
	m.unready["n1"], m.unready["n2"] = true, true
	m.change(set, image("agent:2"))
	m.Still()
	if c := stalled(); c != nil {
		t.Errorf("reported at once: %+v", c)
	}
	since := m.Now()
	m.eventually(set, func(*v1beta1.DaemonSet) error { return unless(stalled() != nil) })
	c := stalled()
	if m.Now().Sub(since) < workloads.StalledAfter-time.Second {
		t.Errorf("reported after %s", m.Now().Sub(since))
	}
	if c.Status != corev1.ConditionUnknown || c.Reason == "" || c.Message == "" || c.LastTransitionTime.IsZero() {
		t.Fatalf("after a minute: %+v", c)
	}
	m.idle()
	clear(m.unready)
	m.eventually(set, settled(2))
	m.eventually(set, func(*v1beta1.DaemonSet) error { return unless(stalled() == nil) })
}

// unless returns an error where a condition is not met.
func unless(met bool) error {
	if met {
		return nil
	}
	return errors.New("not yet")
}

package daemonset_test

import (
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// A pod that has failed and that a hook holds is announced, and counted for the pauses, once it is deleted.
func TestFailedHeld(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create(hooked)
	m.eventually(set, settled(1))
	failed := m.on("n1")
	m.fail(failed)
	for range 5 {
		m.Reconcile()
		m.Advance(time.Minute)
	}
	if m.Look(failed); failed.Labels[kruise.LifecycleStateKey] != string(kruise.LifecycleStatePreparingDelete) ||
		failed.DeletionTimestamp != nil {
		t.Errorf("pod %+v", failed.ObjectMeta)
	}
	if events := m.Server.Events(set, "FailedDaemonPod"); len(events) != 0 {
		t.Errorf("%d events of a pod that stays", len(events))
	}
	m.edit(failed, `{"metadata":{"labels":{"hold":null}}}`)
	m.becomes(set, "n1:1")
	if events := m.Server.Events(set, "FailedDaemonPod"); len(events) != 1 {
		t.Errorf("%d events of a pod that is deleted", len(events))
	}
	next := m.on("n1")
	m.edit(next, `{"metadata":{"labels":{"hold":null}}}`)
	m.fail(next)
	since := m.Clock
	m.eventually(set, settled(1))
	if took := m.Clock.Sub(since); took > 3*time.Second {
		t.Errorf("replaced after %v, and only one pod before has failed", took)
	}
}

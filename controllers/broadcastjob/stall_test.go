package broadcastjob_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

func (m *model) stalled(job *v1beta1.BroadcastJob) *v1beta1.JobCondition {
	m.Helper()
	m.Look(job)
	of := func(c v1beta1.JobCondition) bool { return c.Type == workloads.Stalled }
	i := slices.IndexFunc(job.Status.Conditions, of)
	if i < 0 {
		return nil
	}
	return &job.Status.Conditions[i]
}

// turns takes turns for a time.
func (m *model) turns(d time.Duration) {
	m.Helper()
	for end := m.Now().Add(d); m.Now().Before(end); {
		m.turn()
	}
}

// A job that a failed pod pauses waits for a user, and one without nodes for a node. What pods do for long is no stall,
// and a job that has ended does not stand still.
func TestStalled(t *testing.T) {
	type outcome struct {
		status corev1.ConditionStatus
		reason string
		// late means not before a minute.
		late bool
	}
	onFailure := policy(v1beta1.FailurePolicyTypePause)
	cases := map[string]struct {
		nodes  string
		change func(*v1beta1.BroadcastJob)
		ends   string
		want   outcome
	}{
		"paused by a failed pod": {"a", onFailure, "failed", outcome{corev1.ConditionTrue, "Paused", false}},
		"no node":                {"", onFailure, "", outcome{corev1.ConditionUnknown, "NoNodeFits", true}},
		"long work":              {"a b", parallelism("1"), "runs", outcome{}},
		"completed":              {"a", parallelism("1"), "", outcome{}},
		"paused by its spec":     {"a", paused(true), "", outcome{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, c.nodes, broadcastjob.Options{})
			for node := range strings.FieldsSeq(c.nodes) {
				m.ends[node] = c.ends
			}
			job := m.create(c.change)
			m.turns(workloads.StalledAfter / 2)
			if got := m.stalled(job); (got != nil) != (c.want.reason != "" && !c.want.late) {
				t.Errorf("after half of a minute: %+v", got)
			}
			m.turns(workloads.StalledAfter)
			got := m.stalled(job)
			if got == nil {
				got = &v1beta1.JobCondition{}
			}
			if got.Status != c.want.status || got.Reason != c.want.reason || (got.Message != "") != (c.want.reason != "") {
				t.Fatalf("condition %+v, want %s %s", got, c.want.status, c.want.reason)
			}
			m.Server.Requests()
			m.turns(time.Minute)
			if requests := m.Server.Requests(); len(requests) > 0 {
				t.Errorf("requests while nothing changes: %v", requests)
			}
		})
	}
}

// The condition goes when the job ends.
func TestStalledEnds(t *testing.T) {
	m := newModel(t, "a", broadcastjob.Options{})
	m.ends["a"] = "failed"
	job := m.create(policy(v1beta1.FailurePolicyTypePause))
	m.turns(time.Minute)
	if got := m.stalled(job); got == nil {
		t.Fatal("the job does not stand still")
	}
	m.ends["a"] = ""
	for _, pod := range m.pods() {
		if err := m.Server.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	m.turns(10 * time.Second) // before the pass that looks whether the job goes on
	if got := m.stalled(job); got != nil || job.Status.Phase != v1beta1.PhaseCompleted {
		t.Errorf("phase %s, condition %+v", job.Status.Phase, got)
	}
}

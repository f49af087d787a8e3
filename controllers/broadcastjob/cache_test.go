package broadcastjob_test

import (
	"slices"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
)

// A new leader whose list of jobs is older than its list of pods does not end a job whose failure policy the user has
// changed since.
func TestNewLeaderWithOlderJob(t *testing.T) {
	m := newModel(t, "a b", broadcastjob.Options{})
	m.ends["a"], m.ends["b"] = "runs", "runs"
	job := m.create(policy(v1beta1.FailurePolicyTypeFailFast))
	m.turn()
	m.turn()
	earlier := m.Server.Snapshot()
	m.change(job, func(j *v1beta1.BroadcastJob) { policy(v1beta1.FailurePolicyTypeContinue)(j) })
	m.ends["a"] = "failed"
	m.turn()
	if reads := m.Live.Reads(); len(reads) > 0 {
		t.Errorf("nothing is deleted after the reads %v", reads)
	}
	cache := m.Behind(earlier)
	m.restart(cache) // another replica leads
	for range 5 {
		m.turn()
	}
	cache.Thaw()
	m.turn()
	m.Look(job)
	pods := m.pods()
	if len(pods) != 2 || pods[1].DeletionTimestamp != nil || job.Status.CompletionTime != nil {
		t.Errorf("pods %s, status %+v", m.picture(), job.Status)
	}
	if reads := m.Live.Reads(); !slices.Equal(reads, []string{"get BroadcastJob metadata"}) {
		t.Errorf("reads past the cache: %v, want one", reads)
	}
}

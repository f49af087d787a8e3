package broadcastjob_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
)

// A job on a thousand nodes costs at most two writes for each pod, and none at all while nothing happens, in any phase.
func TestCost(t *testing.T) {
	const nodes = 1000
	for name, limit := range map[string]string{"all at once": "100%", "a quarter at a time": "25%"} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, "", broadcastjob.Options{})
			for i := range nodes {
				m.addNode(fmt.Sprintf("n%04d", i))
			}
			job := m.create(parallelism(limit))
			m.Server.Requests()
			writes := 0
			idle := func(phase string) {
				t.Helper()
				m.Reconcile()
				if requests := m.Server.Requests(); len(requests) > 0 {
					t.Errorf("%s: an idle pass costs %d requests: %s", phase, len(requests), requests[0])
				}
			}
			for i := range 100 {
				m.Reconcile()
				requests := m.Server.Requests()
				writes += len(requests)
				if m.Look(job); job.Status.Phase == v1beta1.PhaseCompleted {
					break
				}
				if i == 0 {
					idle("running")
				}
				m.run()
				m.Server.Requests()
			}
			idle("completed")
			if job.Status.Succeeded != nodes || writes > 2*nodes {
				t.Errorf("%s after %d writes", counters(job), writes)
			}
			t.Logf("%d writes for %d pods", writes, nodes)
		})
	}
}

// One pod at a time is the worst case: each end of a pod is one write of the status, and each creation one more.
func TestCostOneByOne(t *testing.T) {
	m := newModel(t, "a b c d e f g h i j", broadcastjob.Options{})
	job := m.create(parallelism("1"))
	m.Server.Requests()
	writes := 0
	for job.Status.Phase != v1beta1.PhaseCompleted {
		m.Reconcile()
		writes += len(m.Server.Requests())
		m.run()
		m.Server.Requests()
		m.Advance(time.Second)
		m.Look(job)
	}
	if writes != 2*10+1 {
		t.Errorf("%d writes for 10 pods, want two for each and one for the start", writes)
	}
}

package disruption_test

import (
	"testing"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

// TestUnguardedIsCheap: a pod of a namespace without a budget costs no request, and no memory but that of its answer.
func TestUnguardedIsCheap(t *testing.T) {
	s := newCluster(t)
	s.put("a", 1, nil)
	g, x := s.replica(nil)
	s.show(x, "a")
	pod := web("web-000")
	pod.Namespace = "other"
	allocations := testing.AllocsPerRun(100, func() {
		if b, err := g.Budget(t.Context(), pod); b != nil || err != nil {
			t.Fatal(b, err)
		}
	})
	if allocations > 0 || s.reads.Load() > 0 || len(s.Requests()) > 0 {
		t.Errorf("%.0f allocations, %d reads", allocations, s.reads.Load())
	}
}

// BenchmarkRefused is a review of a budget over 10,000 pods that is exhausted: the status decides, and no pod is
// listed.
func BenchmarkRefused(b *testing.B) {
	s := newCluster(b)
	s.put("a", 0, func(budget *policyv1beta1.PodUnavailableBudget) {
		budget.Status.TotalReplicas, budget.Status.CurrentAvailable, budget.Status.DesiredAvailable = 10_000, 10_000, 10_000
	})
	g, x := s.replica(nil)
	s.show(x, "a")
	pod := web("web-000")
	b.ReportAllocs()
	for b.Loop() {
		if d, err := g.Review(b.Context(), disruption.Disruption{Pod: pod, Operation: pub.Evict}); err != nil || d.Allowed {
			b.Fatal(d, err)
		}
	}
}

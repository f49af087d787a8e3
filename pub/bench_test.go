package pub_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/test/growth"
)

// BenchmarkReview decides about one disruption by a budget over 10,000 pods with 1,000 records.
func BenchmarkReview(b *testing.B) {
	o := newObject("web", maxUnavailable("30%"), recorded(records(0, 500, 0), records(500, 1000, 0)), with(10, 7000))
	o.Status.CurrentAvailable, o.Status.TotalReplicas = 9000, 10000
	d := pub.Disruption{Pod: newPod("web-5000"), Operation: pub.Evict}
	b.ReportAllocs()
	for b.Loop() {
		budget, _ := pub.Read(o)
		if v := pub.Review(budget, d, at(0)); v.Reason != pub.Spent {
			b.Fatal(v)
		}
	}
}

// BenchmarkEvent counts one event of a pod among 10,000, and computes the status.
func BenchmarkEvent(b *testing.B) {
	all := pods(10000)
	counted, budget, total := counts(all), newBudget(maxUnavailable("30%")), deployments(10000)
	down := newPod("web-5000", unready)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pod := down
		if i%2 == 0 {
			pod = all[5000]
		}
		counted.Set(pod, pub.Policy{})
		pub.Recount(pub.Input{Budget: budget, Counts: counted, Total: total, Now: at(0)})
	}
}

// A status costs its records and not the pods: a hundred times as many pods take less than ten times as long.
func TestCostOfAnEvent(t *testing.T) {
	cost := func(n int) time.Duration {
		all := make([]*corev1.Pod, n)
		for i := range all {
			all[i] = newPod(fmt.Sprint("web-", i))
		}
		counted, budget := counts(all), newBudget(maxUnavailable("30%"))
		return growth.Cost(func() {
			counted.Set(newPod("web-5", unready), pub.Policy{})
			counted.Set(all[5], pub.Policy{})
			pub.Recount(pub.Input{Budget: budget, Counts: counted, Total: deployments(int32(n)), Now: at(0)})
		})
	}
	few, many := cost(100), cost(10000)
	t.Logf("an event among 100 pods takes %v, among 10,000 %v", few, many)
	if many > 10*few {
		t.Errorf("an event among 10,000 pods takes %v, among 100 %v", many, few)
	}
}

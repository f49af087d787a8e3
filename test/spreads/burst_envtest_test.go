//go:build envtest

package spreads_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Pods that are created at once, through both replicas: none is refused, the distribution is exact, and there are few
// writes.
func testBurst(t *testing.T, g *ground) {
	const concurrency = 50
	n := *burst
	set := newCloneSet()
	namespace := g.spread(t,
		newSpread("apps.kruise.io/v1beta1", "CloneSet", limit(int32(n*3/10)), limit(int32(n*4/10)), nil), set)
	owner := g.owner(t, set)
	g.writes()
	var mu sync.Mutex
	got := map[string]int{}
	var slowest time.Duration
	next := make(chan string)
	var all sync.WaitGroup
	began := time.Now()
	for range concurrency {
		all.Add(1)
		go func() {
			defer all.Done()

			for name := range next {
				since := time.Now()
				p := newPod(namespace, name, owner)
				if err := g.Client.Create(t.Context(), p); err != nil {
					t.Error(err)
				}
				mu.Lock()
				got[subsetOf(p)]++
				slowest = max(slowest, time.Since(since))
				mu.Unlock()
			}
		}()
	}
	for _, name := range names(n) {
		next <- name
	}
	close(next)
	all.Wait()
	took := time.Since(began)
	admission := g.writes()
	if diff := cmp.Diff(map[string]int{"a": n * 3 / 10, "b": n * 4 / 10, "c": n - n*3/10 - n*4/10}, got); diff != "" {
		t.Errorf("subsets (-want +got):\n%s", diff)
	}
	g.status(t, namespace, fmt.Sprintf("a %d 0;b %d 0;c %d -1;", n*3/10, n*4/10, n-n*3/10-n*4/10))
	rest := g.writes()
	t.Logf(
		"%d pods in %s, the slowest in %s; writes while they were created: %d, until the status was final: %d, %.3f per pod",
		n, took, slowest, admission, rest, float64(admission+rest)/float64(n))
	if most := max(30, n/10); admission+rest > most {
		t.Errorf("%d writes, want at most %d", admission+rest, most)
	}
}

// While no replica answers, pods are created without a subset, and deleted.
func testDown(t *testing.T, g *ground) {
	set := newJob()
	namespace := g.spread(t, newSpread("batch/v1", "Job", limit(5)), set)
	g.down.Store(true)
	defer g.down.Store(false)
	if diff := cmp.Diff(map[string]int{"": 1}, g.create(t, namespace, g.owner(t, set), "web-0")); diff != "" {
		t.Errorf("subsets (-want +got):\n%s", diff)
	}
	if err := g.Client.Delete(t.Context(), newPod(namespace, "web-0", g.owner(t, set))); err != nil {
		t.Error(err)
	}
}

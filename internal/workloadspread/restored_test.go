package workloadspread_test

import (
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// free is a WorkloadSpread whose first subset has one free place.
func free() *subset.Spread {
	ws := spread("s", "CloneSet", 1, -1)
	ws.Status.VersionedSubsetStatuses = map[string][]subset.Entry{one: {
		{Name: "a", MissingReplicas: 1}, {Name: "b", MissingReplicas: -1},
	}}
	return ws
}

// taken is a cluster in which a replica has given that place to the pod web-x, at a high version. Its cache shows the
// state before.
func taken(t *testing.T) (*cluster, *workloadspread.Allocator, *workloadspread.Index, *time.Time) {
	t.Helper()
	c, now := newCluster(t), time.Now()
	for range 50 {
		c.put(spread("other", "CloneSet", 1, -1))
	}
	c.put(free())
	d, x := c.replica(workloadspread.Options{Now: func() time.Time { return now }})
	c.show(x, "s")
	if got := subsetOf(c.admit(d, cloned("web-x"), "1")); got != "a" {
		t.Fatalf("the first pod gets %q", got)
	}
	return c, d, x, &now
}

// again admits the pod that has the place, which takes neither a live read nor a write.
func (c *cluster) again(d *workloadspread.Allocator) {
	c.Helper()
	c.reads.Store(0)
	c.writes.Store(0)
	got := subsetOf(c.admit(d, cloned("web-x"), "1"))
	if got != "a" || c.reads.Load() != 0 || c.writes.Load() != 0 {
		c.Errorf("the pod gets %q after %d live reads and %d writes", got, c.reads.Load(), c.writes.Load())
	}
}

// TestRestored: etcd is restored to an older version. The pod is recorded again.
func TestRestored(t *testing.T) {
	c, d, x, _ := taken(t)
	c.Server = apiserver.New(c.Scheme(), time.Now)
	c.put(free())
	c.show(x, "s")
	if got := subsetOf(c.admit(d, cloned("web-x"), "1")); got != "a" {
		t.Errorf("the pod gets %q", got)
	}
	if creating := c.stored("s").Status.VersionedSubsetStatuses[one][0].CreatingPods; len(creating) != 1 {
		t.Errorf("%d pods are recorded", len(creating))
	}
}

// TestCacheLags: a cache that lags for minutes costs one conflict with a live read a minute.
func TestCacheLags(t *testing.T) {
	c, d, _, now := taken(t)
	for range 3 {
		*now = now.Add(time.Minute)
		c.reads.Store(0)
		if got := subsetOf(c.admit(d, cloned("web-x"), "1")); got != "a" || c.reads.Load() != 1 {
			t.Errorf("the pod gets %q after %d live reads", got, c.reads.Load())
		}
		c.again(d)
	}
}

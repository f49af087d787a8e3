package workloadspread_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/internal/apiserver"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
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
	d, x := c.replica(workloadspread.Options{
		Now: func() time.Time { return now }, Gather: func(time.Duration, int, int) time.Duration { return 0 },
	})
	c.show(x, "s")
	if got := subsetOf(c.admit(d, cloned("web-x"), "1")); got != "a" {
		t.Fatalf("the first pod gets %q", got)
	}
	return c, d, x, &now
}

// again admits the pod that has the place, which changes nothing, and says how many live reads that takes.
func (c *cluster) again(d *workloadspread.Allocator, reads int32) {
	c.Helper()
	c.reads.Store(0)
	c.writes.Store(0)
	got := subsetOf(c.admit(d, cloned("web-x"), "1"))
	if got != "a" || c.reads.Load() != reads || c.writes.Load() != 0 {
		c.Errorf("the pod gets %q after %d live reads and %d writes, want a after %d",
			got, c.reads.Load(), c.writes.Load(), reads)
	}
}

// TestRestored: etcd is restored to an older version. A WorkloadSpread is believed a minute later, after one live read:
// the pod is recorded again.
func TestRestored(t *testing.T) {
	c, d, x, now := taken(t)
	c.Server = apiserver.New(c.Scheme(), time.Now)
	c.put(free())
	c.show(x, "s")
	c.again(d, 0)
	*now = now.Add(time.Minute)
	c.reads.Store(0)
	if got := subsetOf(c.admit(d, cloned("web-x"), "1")); got != "a" || c.reads.Load() != 1 {
		t.Errorf("the pod gets %q after %d live reads", got, c.reads.Load())
	}
	if creating := c.stored("s").Status.VersionedSubsetStatuses[one][0].CreatingPods; len(creating) != 1 {
		t.Errorf("%d pods are recorded", len(creating))
	}
}

// TestCacheLags: a cache that lags for minutes costs one live read a minute, also where reads fail.
func TestCacheLags(t *testing.T) {
	c, d, _, now := taken(t)
	for i := range 4 {
		if i == 2 {
			c.failRead = func() error { return errors.New("connection reset") }
		}
		*now = now.Add(time.Minute)
		c.again(d, 1)
		c.again(d, 0)
	}
}

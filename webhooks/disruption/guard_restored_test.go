package disruption_test

import (
	"testing"
	"time"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

// spent is a cluster whose only budget was used up by a replica, at a high version. The cache of the replica still
// shows the state before.
func spent(t *testing.T) (*cluster, *disruption.Guard, *disruption.BudgetIndex, *time.Time) {
	t.Helper()
	c := newCluster(t)
	for range 50 {
		c.put("other", 1, func(b *policyv1beta1.PodUnavailableBudget) {
			b.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		})
	}
	c.put("web", 1, nil)
	now := noon()
	g, x := c.replica(func(_ *disruption.GuardLookups, o *disruption.GuardOptions) {
		o.Now = func() time.Time { return now }
	})
	c.show(x, "web")
	c.want(g, "web-000", pub.Spent, 0)
	c.want(g, "web-001", pub.Exhausted, 0)
	return c, g, x, &now
}

// want reviews the deletion of a pod, and says how many live reads that takes.
func (c *cluster) want(g *disruption.Guard, pod string, reason pub.Reason, reads int32) {
	c.Helper()
	c.reads.Store(0)
	got, err := g.Review(c.Context(), disruption.Disruption{Pod: web(pod), Operation: pub.Delete, User: "ann"})
	if err != nil || got.Reason != reason || c.reads.Load() != reads {
		c.Errorf("%s: %+v, %v after %d live reads, want %s after %d", pod, got.Verdict, err, c.reads.Load(), reason, reads)
	}
}

// TestRestored: etcd is restored to an older version. The cache is believed at once.
func TestRestored(t *testing.T) {
	c, g, x, _ := spent(t)
	c.Server = apiserver.New(c.Scheme(), noon) // its versions begin again
	c.put("web", 1, nil)
	c.show(x, "web")
	c.want(g, "web-001", pub.Spent, 0)
	c.want(g, "web-002", pub.Exhausted, 0)
	if codes := c.codes(); len(codes) != 1 || codes[0] != "200" {
		t.Errorf("writes %q", codes)
	}
}

// TestRestoredWithout: the budget was created after the version that etcd was restored to.
func TestRestoredWithout(t *testing.T) {
	c, g, _, now := spent(t)
	c.Server = apiserver.New(c.Scheme(), noon)
	*now = now.Add(time.Minute)
	c.want(g, "web-001", disruption.Unguarded, 0)
}

// TestCacheLags: a cache that lags for minutes costs one conflict with a live read a minute, and admits nothing.
func TestCacheLags(t *testing.T) {
	c, g, _, now := spent(t)
	for range 3 {
		*now = now.Add(time.Minute)
		c.want(g, "web-001", pub.Exhausted, 1)
		c.want(g, "web-001", pub.Exhausted, 0)
	}
}

package resourcedistribution_test

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A new leader whose list of distributions is older than its lists of copies keeps the copies in namespaces that the
// admin has added since. It reads the distribution once past the cache, before its first write.
func TestNewLeaderWithOlderDistribution(t *testing.T) {
	m := newModel(t)
	m.options.Live = m.Live
	m.restart(func(c client.WithWatch) client.WithWatch { return c })
	for _, name := range []string{"one", "two", "three"} {
		m.namespace(name, nil)
	}
	m.distribute("registry", plain, `"includedNamespaces":{"list":[{"name":"one"}]}`)
	m.must("registry")
	earlier := m.Server.Snapshot()
	m.distribute("registry", plain, `"includedNamespaces":{"list":[{"name":"one"},{"name":"two"},{"name":"three"}]}`)
	m.must("registry")
	m.Live.Reads()
	before := m.secret("two").UID
	cache := m.Behind(earlier)
	m.restart(func(client.WithWatch) client.WithWatch { return cache }) // another replica leads
	for range 3 {
		m.must("registry")
	}
	cache.Thaw()
	m.must("registry")
	if now := m.secret("two"); now == nil || now.UID != before {
		t.Errorf("the copy was deleted, and is now %v", now)
	}
	m.distribute("registry", plain, `"includedNamespaces":{"list":[{"name":"one"},{"name":"two"}]}`)
	m.must("registry")
	if m.secret("three") != nil {
		t.Error("the copy is left in a namespace that the admin has removed")
	}
	reads := slices.DeleteFunc(m.Live.Reads(), func(read string) bool {
		return read != "get ResourceDistribution metadata"
	})
	if len(reads) != 1 {
		t.Errorf("%d reads of the distribution past the cache, want 1", len(reads))
	}
}

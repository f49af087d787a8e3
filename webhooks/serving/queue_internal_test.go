package serving

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// bounds are small, so that a test reaches them: 4 reviews and a MiB of a namespace.
func bounds() Limits {
	l := Options{Limits: Limits{Memory: 16 << 20, Body: 1 << 20, Requests: 64}}.withDefaults().Limits
	l.Wait = time.Nanosecond
	return l
}

// review is one in memory, which has not run yet.
func (s *shares) review(t *testing.T, of tenant, size int64) *share {
	t.Helper()
	one, ok := s.request(of.client, false)
	if !ok {
		t.Fatalf("there is no request for %s", of)
	}
	one.join(of)
	if err := one.reserve(size); err != nil {
		t.Fatalf("there is no memory for %s: %v", of, err)
	}
	return one
}

// codeOf is that of a refusal, or 200.
func codeOf(err error) int {
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return refused.code
	}
	return http.StatusOK
}

func TestQueues(t *testing.T) {
	client, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	shop, docs := tenant{client: client, namespace: "shop"}, tenant{client: client, namespace: "docs"}
	const kib, mib = 1 << 10, 1 << 20
	type step struct {
		of         tenant
		read, need int64
		code       int
	}
	four := func(of tenant) []step { return slices.Repeat([]step{{of, kib, kib, 200}}, 4) }
	elsewhere, converts := tenant{client: other, namespace: "shop"}, tenant{client: client, path: "/convert"}
	cases := map[string]struct {
		why   string
		steps []step
	}{
		"many":           {"4 may run", four(shop)},
		"too many":       {"the fifth waits in vain", append(four(shop), step{shop, kib, kib, 429})},
		"another":        {"its namespace is another one", append(four(shop), step{docs, kib, kib, 200})},
		"another client": {"what it claims does not hurt others", append(four(elsewhere), step{shop, kib, kib, 200})},
		"large":          {"alone it may be larger than what its namespace has", []step{{shop, kib, 3 * mib, 200}}},
		"two large":      {"the second one is not alone", []step{{shop, kib, 3 * mib, 200}, {shop, kib, kib, 429}}},
		"too large":      {"one review may have three eighths", []step{{shop, kib, 6 * mib, 413}}},
		"large ones": {
			why:   "those of other namespaces have the same share of the client",
			steps: []step{{shop, kib, 3 * mib, 200}, {docs, kib, 3 * mib, 503}},
		},
		"small": {
			why:   "large ones leave memory to it",
			steps: []step{{shop, kib, 3 * mib, 200}, {docs, kib, 100 * kib, 200}},
		},
		"without": {
			why:   "paths without a namespace have twice as much",
			steps: slices.Repeat([]step{{converts, kib, 100 * kib, 200}}, 8),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newShares(bounds(), meter{})
			var all []*share
			for i, step := range c.steps {
				one := s.review(t, step.of, step.read)
				all = append(all, one)
				if err := one.run(t.Context(), step.need); codeOf(err) != step.code {
					t.Errorf("%s: step %d: %v, want %d", c.why, i, err, step.code)
				}
			}
			for _, one := range all {
				one.end()
			}
			if s.all != (held{}) || len(s.each) != 0 || len(s.tenants) != 0 || s.waiting != 0 {
				t.Errorf("%+v is held by %d clients and %d namespaces", s.all, len(s.each), len(s.tenants))
			}
		})
	}
}

// A body that grows beyond what its namespace has is refused, unless nothing else of the namespace is in memory.
func TestLargeBodies(t *testing.T) {
	s := newShares(bounds(), meter{})
	shop := tenant{client: netip.MustParseAddr("10.0.0.1"), namespace: "shop"}
	one := s.review(t, shop, 3<<20)
	other, _ := s.request(shop.client, false)
	other.join(shop)
	if err := other.reserve(100 << 10); err != nil {
		t.Errorf("a small body, which can wait: %v", err)
	}
	if err := other.reserve(200 << 10); codeOf(err) != http.StatusTooManyRequests {
		t.Errorf("another body: %v", err)
	}
	other.end()
	one.end()
}

// Reviews run in the order in which they have waited, and one that is cancelled leaves the queue.
func TestOrder(t *testing.T) {
	limits := bounds()
	limits.Wait = time.Hour
	s := newShares(limits, meter{})
	shop := tenant{client: netip.MustParseAddr("10.0.0.1"), namespace: "shop"}
	first := s.review(t, shop, 3<<20)
	if err := first.run(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	type end struct {
		at  int
		err error
	}
	ended := make(chan end, 4)
	gone, cancel := context.WithCancel(t.Context())
	var all []*share
	for i := range 4 {
		one, _ := s.request(shop.client, false)
		one.join(shop)
		all = append(all, one)
		ctx := t.Context()
		if i == 0 {
			ctx = gone
		}
		go func() { ended <- end{i, one.run(ctx, 700<<10)} }()
		for waits := false; !waits; {
			s.mu.Lock()
			waits = s.waiting == i+1
			s.mu.Unlock()
		}
	}
	cancel()
	if e := <-ended; e.at != 0 || codeOf(e.err) != http.StatusTooManyRequests {
		t.Errorf("review %d ended with %v", e.at, e.err)
	}
	all[0].end()
	first.end() // a MiB has no room for two of 700 KiB
	for i := 1; i < 4; i++ {
		if e := <-ended; e.at != i || e.err != nil {
			t.Fatalf("review %d began with %v, want %d", e.at, e.err, i)
		}
		select {
		case e := <-ended:
			t.Fatalf("review %d began beside another", e.at)
		default:
		}
		all[i].end()
	}
}

// Whatever reviews of some namespaces hold, a small one of another namespace runs at once.
func TestTenantsTakeNoSmallReview(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			s := newShares(bounds(), meter{})
			client := netip.MustParseAddr("10.0.0.1")
			var theirs []*share
			for range 300 {
				if len(theirs) > 0 && random.IntN(3) == 0 {
					at := random.IntN(len(theirs))
					theirs[at].end()
					theirs = slices.Delete(theirs, at, at+1)
				}
				one, ok := s.request(client, false)
				if !ok {
					continue
				}
				one.join(tenant{client: client, namespace: []string{"a", "b"}[random.IntN(2)]})
				size, need := random.Int64N(1<<random.IntN(21)), random.Int64N(1<<random.IntN(23))
				if one.reserve(size) != nil || one.run(t.Context(), need) != nil {
					one.end()
				} else {
					theirs = append(theirs, one)
				}
				s.check(t, theirs)
				mine := s.review(t, tenant{client: client, namespace: "mine"}, 10<<10)
				if err := mine.run(t.Context(), 200<<10); err != nil {
					t.Fatalf("a small review is refused: %v; held is %+v", err, s.all)
				}
				mine.end()
			}
		})
	}
}

// check compares what is counted with what the reviews hold.
func (s *shares) check(t *testing.T, running []*share) {
	t.Helper()
	var want held
	each := map[tenant]int64{}
	for _, one := range running {
		want.add(one.held)
		each[one.queue.tenant] += one.held.memory
	}
	if s.all != want || len(s.tenants) != len(each) {
		t.Fatalf("counted %+v of %d namespaces, want %+v of %d", s.all, len(s.tenants), want, len(each))
	}
	for of, memory := range each {
		if s.tenants[of].memory != memory {
			t.Fatalf("counted %d bytes %s, want %d", s.tenants[of].memory, of, memory)
		}
	}
	if m := s.most.Memory; want.memory > m/2 || want.large > m/8*3 {
		t.Fatalf("one client holds %+v of %d", want, m)
	}
}

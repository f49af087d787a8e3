package serving

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// A client that was answered lately does not wait for a lookup that takes long. All others wait.
func TestSlowLookup(t *testing.T) {
	address := netip.MustParseAddr("10.0.0.1")
	cases := map[string]struct {
		why   string
		known *verdict
		waits bool
	}{
		"answered a minute ago": {
			"its next lookup may take as long as it takes", &verdict{settled: true, at: time.Now().Add(-2 * fresh)}, false,
		},
		"answered an hour ago": {
			"another client may have the address", &verdict{settled: true, at: time.Now().Add(-time.Hour)}, true,
		},
		"refused a minute ago": {
			"it may be an API server now", &verdict{why: "a pod", settled: true, at: time.Now().Add(-2 * fresh)}, true,
		},
		"never looked up": {"the last lookup failed", &verdict{at: time.Now().Add(-2 * fresh)}, true},
		"new":             {"nothing is known of it", nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			release, asked := make(chan struct{}), make(chan struct{}, 2)
			v := newVerdicts(Clients{Check: func(ctx context.Context, _ netip.Addr) (Verdict, error) {
				asked <- struct{}{}
				select {
				case <-release:
				case <-ctx.Done():
				}
				return Verdict{Why: "a pod"}, nil
			}})
			v.brief = time.Millisecond
			if c.known != nil {
				v.known[address] = *c.known
			}
			answer := make(chan string, 1)
			go func() {
				why, err := v.of(t.Context(), address, false)
				if err != nil {
					t.Error(err)
				}
				answer <- why
			}()
			<-asked
			if !c.waits {
				if why := <-answer; why != "" {
					t.Errorf("%s: refused: %s", c.why, why)
				}
				close(release)
				return
			}
			close(release)
			if why := <-answer; why != "a pod" {
				t.Errorf("%s: it is %q", c.why, why)
			}
		})
	}
}

// A lookup that fails is not repeated for every request, and no client passes for settled by it.
func TestFailedLookup(t *testing.T) {
	address, lookups := netip.MustParseAddr("10.0.0.1"), 0
	v := newVerdicts(Clients{Check: func(context.Context, netip.Addr) (Verdict, error) {
		lookups++
		return Verdict{}, errors.New("down")
	}})
	for range 3 {
		_, _ = v.of(t.Context(), address, false)
	}
	if lookups != 1 {
		t.Errorf("%d lookups of one client at once", lookups)
	}
	if last, found := v.last(address); !found || last.settled || last.why != "" {
		t.Errorf("the verdict is %+v, %t", last, found)
	}
}

// A stranger that only connects is looked up, within a budget: of all strangers, and of one network. Known clients
// cause no lookup.
func TestLookupsOfConnections(t *testing.T) {
	v6 := func(i int) netip.Addr {
		address := netip.MustParseAddr("fd00:1::").As16()
		address[14], address[15] = byte(i>>8), byte(i)
		return netip.AddrFrom16(address)
	}
	v4 := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }
	only := func(address string) func(int) netip.Addr {
		return func(int) netip.Addr { return netip.MustParseAddr(address) }
	}
	cases := map[string]struct {
		why     string
		address func(i int) netip.Addr
		most    int
	}{
		"one":                 {"it is looked up once", only("fd00:1::1"), 1},
		"one network":         {"a pod can have all addresses of it", v6, 1},
		"many":                {"the budget is that of all", v4, burstOfAhead},
		"an API server":       {"it is known", only("10.0.0.1"), 0},
		"the loopback":        {"it is in this pod", only("::1"), 0},
		"answered":            {"it was checked before", only("10.0.0.2"), 0},
		"shown a certificate": {"no pod has one", only("10.0.0.3"), 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var lookups atomic.Int64
			v := newVerdicts(Clients{
				Check: func(context.Context, netip.Addr) (Verdict, error) {
					lookups.Add(1)
					return Verdict{Why: "a pod"}, nil
				},
				Known: func(_ context.Context, a netip.Addr) bool { return a == netip.MustParseAddr("10.0.0.1") },
			})
			v.keep(netip.MustParseAddr("10.0.0.2"), verdict{settled: true, at: time.Now().Add(-2 * fresh)})
			v.prove(netip.MustParseAddr("10.0.0.3"))
			began := time.Now()
			for i := range 1000 {
				if got := v.standing(t.Context(), c.address(i)); (got == known) != (c.most == 0) {
					t.Fatalf("%s: %v", c.why, got)
				}
			}
			most := c.most + c.most*int(time.Since(began)/time.Second)
			late := time.Now().Add(20 * time.Second)
			for c.most > 0 && v.standing(t.Context(), c.address(0)) != refused {
				if time.Now().After(late) {
					t.Fatal("the first stranger is not looked up")
				}
				runtime.Gosched()
			}
			if n := int(lookups.Load()); n > most || n < min(1, c.most) {
				t.Errorf("%s: %d lookups, want at most %d", c.why, n, most)
			}
		})
	}
}

// What an API server needs is remembered, however many strangers are looked up.
func TestManyVerdicts(t *testing.T) {
	v := newVerdicts(Clients{})
	server := netip.MustParseAddr("10.0.0.1")
	v.keep(server, verdict{settled: true, at: time.Now()})
	for i := range 3 * mostVerdicts {
		one := verdict{why: "a pod"}
		if i%2 == 0 {
			one = verdict{settled: true, unknown: true, at: time.Now()}
		}
		v.keep(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), one)
	}
	if last, _ := v.last(server); !last.answered() {
		t.Error("the verdict about an API server is forgotten")
	}
	if n := len(v.known); n > mostVerdicts {
		t.Errorf("%d verdicts are remembered", n)
	}
}

// A request counts for its connection where its client has passed a check.
func TestValidRequests(t *testing.T) {
	server, stranger := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.9")
	known := func(_ context.Context, a netip.Addr) bool { return a == server }
	check := func(context.Context, netip.Addr) (Verdict, error) { return Verdict{}, errors.New("down") }
	for name, c := range map[string]struct {
		why     string
		clients Clients
		last    *verdict
		address netip.Addr
		want    bool
	}{
		"an API server": {
			why:     "it is known, also while pods cannot be looked up",
			clients: Clients{Check: check, Known: known},
			address: server,
			want:    true,
		},
		"not looked up": {
			why: "it may be a pod that has just started", clients: Clients{Check: check, Known: known}, address: stranger,
		},
		"answered": {
			why:     "no pod has the address",
			clients: Clients{Check: check},
			last:    &verdict{settled: true, unknown: true},
			address: stranger,
			want:    true,
		},
		"unchecked":         {"all are answered", Clients{}, nil, stranger, true},
		"no certificate":    {"a conversion needs none", Clients{CA: x509.NewCertPool()}, nil, stranger, false},
		"had a certificate": {"it is known", Clients{CA: x509.NewCertPool()}, &verdict{proved: time.Now()}, stranger, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := newGate(Options{Clients: c.clients}.withDefaults())
			if err != nil {
				t.Fatal(err)
			}
			if c.last != nil {
				g.verdicts.keep(c.address, *c.last)
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
			if got := g.valid(c.address, r); got != c.want {
				t.Errorf("%s: %t", c.why, got)
			}
		})
	}
}

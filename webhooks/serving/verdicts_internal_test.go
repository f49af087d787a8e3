package serving

import (
	"context"
	"errors"
	"net/netip"
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
		"answered a minute ago": {"its next lookup may take as long as it takes", &verdict{settled: true, at: time.Now().Add(-2 * fresh)}, false},
		"answered an hour ago":  {"another client may have the address", &verdict{settled: true, at: time.Now().Add(-time.Hour)}, true},
		"refused a minute ago":  {"it may be an API server now", &verdict{why: "a pod", settled: true, at: time.Now().Add(-2 * fresh)}, true},
		"never looked up":       {"the last lookup failed", &verdict{at: time.Now().Add(-2 * fresh)}, true},
		"new":                   {"nothing is known of it", nil, true},
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

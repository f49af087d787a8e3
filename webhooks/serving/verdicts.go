package serving

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

const (
	// fresh is how long the verdict about a client is used.
	fresh = time.Minute
	// mostVerdicts bounds the memory: a client has one address, an attacker with many pods has many.
	mostVerdicts = 4096
	// checks per second of clients that are not known, and how many at once. Each is a list of pods by their address.
	checks, burst = 5, 20
	// patience of one check.
	patience = 2 * time.Second
	// retry is when a check is repeated that failed.
	retry = 5 * time.Second
	// lately is how long a client that was answered does not wait for its next check longer than brief.
	lately, brief = 10 * time.Minute, 250 * time.Millisecond
)

// Verdict is what is known of a client.
type Verdict struct {
	// Why the client is refused; empty for a client that is answered.
	Why string
	// Unknown is true when nothing is known of the address. The client waits for five seconds, in which the address of a pod that has just
	// started becomes known, and is checked again.
	Unknown bool
}

// verdicts remember which clients are refused.
type verdicts struct {
	check   func(ctx context.Context, address netip.Addr) (Verdict, error)
	settle  time.Duration
	brief   time.Duration
	unknown *rate.Limiter
	flights singleflight.Group

	mu    sync.Mutex
	known map[netip.Addr]verdict
}

type verdict struct {
	why   string
	until time.Time
	// settled reports that the last check succeeded, and at when it did.
	settled bool
	at      time.Time
}

// answered reports whether the client was answered after a check.
func (v verdict) answered() bool { return v.settled && v.why == "" }

func newVerdicts(c Clients) *verdicts {
	return &verdicts{check: c.Check, settle: c.Settle, brief: brief, unknown: rate.NewLimiter(checks, burst), known: map[netip.Addr]verdict{}}
}

// of returns why a client is refused, or an error where that is not known. A prompt request does not wait for a slow check.
func (v *verdicts) of(ctx context.Context, address netip.Addr, prompt bool) (string, error) {
	if v.check == nil || !address.IsValid() {
		return "", nil
	}
	last, _ := v.last(address)
	now := time.Now() //nolint:forbidigo // of connections, which no test has at another time
	if now.Before(last.until) {
		return last.why, nil
	}
	// All requests of a client wait for one check.
	result := v.flights.DoChan(address.String(), func() (any, error) {
		return v.decide(context.WithoutCancel(ctx), address, last)
	})
	var late <-chan time.Time
	if prompt || last.answered() && now.Sub(last.at) < lately {
		timer := time.NewTimer(v.brief)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-late:
		return "", nil
	case <-ctx.Done():
		return "", fmt.Errorf("check a client: %w", ctx.Err())
	case r := <-result:
		why, _ := r.Val.(string)
		return why, r.Err
	}
}

// decide checks a client. A client that was answered before is checked without delay, however many others there are. After a check that
// failed, the client is answered until the next one.
func (v *verdicts) decide(ctx context.Context, address netip.Addr, last verdict) (string, error) {
	if !last.answered() && !v.unknown.Allow() {
		return "too many clients to check: try again", nil
	}
	now, err := v.ask(ctx, address)
	if err == nil && now.Unknown && !last.answered() {
		settled := time.NewTimer(v.settle)
		defer settled.Stop()
		<-settled.C // the client may go meanwhile; the verdict is of use for its next request
		now, err = v.ask(ctx, address)
	}
	at := time.Now() //nolint:forbidigo // as above
	if err != nil {
		v.keep(address, verdict{until: at.Add(retry), settled: last.answered(), at: last.at})
		return "", err
	}
	v.keep(address, verdict{why: now.Why, until: at.Add(fresh), settled: true, at: at})
	return now.Why, nil
}

func (v *verdicts) ask(ctx context.Context, address netip.Addr) (Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return v.check(ctx, address)
}

func (v *verdicts) last(address netip.Addr) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, found := v.known[address]
	return last, found
}

// keep remembers a verdict. Where there are too many, refused clients are forgotten first: they are checked again.
func (v *verdicts) keep(address netip.Addr, now verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= mostVerdicts {
		maps.DeleteFunc(v.known, func(_ netip.Addr, old verdict) bool { return old.why != "" })
	}
	if len(v.known) >= mostVerdicts {
		clear(v.known)
	}
	v.known[address] = now
}

// refused reports whether a client was refused within the last minute.
func (v *verdicts) refused(address netip.Addr) bool {
	last, found := v.last(address)
	return found && last.why != "" && time.Now().Before(last.until) //nolint:forbidigo // as above
}

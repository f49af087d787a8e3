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
	// checks per second of clients that are not known and have sent a request, and how many at once. Each is a list of
	// pods by their address. The others have only connected: an attacker with many addresses does not keep a request
	// from its check by these.
	checks, burst             = 4, 15
	checksAhead, burstOfAhead = 1, 5
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
	// Unknown is true when nothing is known of the address. The client waits for five seconds, in which the address of a
	// pod that has just started becomes known, and is checked again.
	Unknown bool
}

// verdicts remember which clients are refused.
type verdicts struct {
	check   func(ctx context.Context, address netip.Addr) (Verdict, error)
	isKnown func(ctx context.Context, address netip.Addr) bool
	settle  time.Duration
	brief   time.Duration
	// requests and ahead are for checks of clients that are not known: with a request, and before one.
	requests, ahead *budget
	flights         singleflight.Group

	mu    sync.Mutex
	known map[netip.Addr]verdict
}

type verdict struct {
	why   string
	until time.Time
	// settled reports that the last check succeeded, and at when it did.
	settled bool
	at      time.Time
	// unknown reports that the client was answered although nothing is known of it, and proved when it last showed a
	// certificate.
	unknown bool
	proved  time.Time
}

// answered reports whether the client was answered after a check.
func (v verdict) answered() bool { return v.settled && v.why == "" }

func (v verdict) answeredLately(now time.Time) bool { return v.answered() && now.Sub(v.at) < lately }

func newVerdicts(c Clients) *verdicts {
	return &verdicts{
		check: c.Check, isKnown: c.Known, settle: c.Settle, brief: brief, known: map[netip.Addr]verdict{},
		requests: newBudget(checks, burst), ahead: newBudget(checksAhead, burstOfAhead),
	}
}

// standing returns what is known of a client that connects, without waiting. An unknown one is looked up meanwhile.
func (v *verdicts) standing(ctx context.Context, address netip.Addr) standing {
	last, _ := v.last(address)
	now := time.Now() //nolint:forbidigo // of connections, which no test has at another time
	switch {
	case v.check != nil && last.why != "" && now.Before(last.until):
		return refused
	case isLoopback(address), last.answeredLately(now) && !last.unknown, now.Sub(last.proved) < lately:
		return known
	case v.recognised(ctx, address):
		return known
	}
	if v.check != nil && address.IsValid() && now.After(last.until) && v.ahead.allow(address) {
		v.flights.DoChan(address.String(), func() (any, error) {
			return v.decide(context.WithoutCancel(ctx), address, last)
		})
	}
	if v.check != nil && last.answeredLately(now) {
		return answered
	}
	return stranger
}

// waits reports whether the next request of a client waits for a check.
func (v *verdicts) waits(ctx context.Context, address netip.Addr) bool {
	if v.check == nil || !address.IsValid() {
		return false
	}
	last, _ := v.last(address)
	now := time.Now() //nolint:forbidigo // as above
	return !now.Before(last.until) && !last.answeredLately(now) && !v.recognised(ctx, address)
}

// recognised reports whether a client is that of Clients.Known.
func (v *verdicts) recognised(ctx context.Context, address netip.Addr) bool {
	return v.isKnown != nil && v.isKnown(ctx, address)
}

// prove records that a client has shown a certificate.
func (v *verdicts) prove(address netip.Addr) {
	last, _ := v.last(address)
	last.proved = time.Now() //nolint:forbidigo // as above
	v.keep(address, last)
}

// of returns why a client is refused, or an error where that is not known. A prompt request does not wait for a slow
// check.
func (v *verdicts) of(ctx context.Context, address netip.Addr, prompt bool) (string, error) {
	if v.check == nil || !address.IsValid() {
		return "", nil
	}
	last, _ := v.last(address)
	now := time.Now() //nolint:forbidigo // of connections, which no test has at another time
	if now.Before(last.until) {
		return last.why, nil
	}
	// All requests of a client wait for one check. A client that is known, or was answered before, is checked without
	// delay, however many others there are.
	result := v.flights.DoChan(address.String(), func() (any, error) {
		if !last.answered() && !v.recognised(ctx, address) && !v.requests.allow(address) {
			return "too many clients to check: try again", nil
		}
		return v.decide(context.WithoutCancel(ctx), address, last)
	})
	var late <-chan time.Time
	if prompt || last.answeredLately(now) {
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

// decide checks a client. After a check that failed, the client is answered until the next one.
func (v *verdicts) decide(ctx context.Context, address netip.Addr, last verdict) (string, error) {
	now, err := v.ask(ctx, address)
	if err == nil && now.Unknown && !last.answered() {
		settled := time.NewTimer(v.settle)
		defer settled.Stop()
		<-settled.C // the client may go meanwhile; the verdict is of use for its next request
		now, err = v.ask(ctx, address)
	}
	at := time.Now() //nolint:forbidigo // as above
	if err != nil {
		v.keep(address, verdict{until: at.Add(retry), settled: last.answered(), at: last.at, unknown: last.unknown})
		return "", err
	}
	v.keep(address, verdict{why: now.Why, until: at.Add(fresh), settled: true, at: at, unknown: now.Unknown})
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

// keep remembers a verdict. Where there are too many, refused clients are forgotten first, then unknown ones: they are
// checked again.
func (v *verdicts) keep(address netip.Addr, now verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if old := v.known[address]; old.proved.After(now.proved) {
		now.proved = old.proved
	}
	for _, worthless := range []func(netip.Addr, verdict) bool{
		func(_ netip.Addr, old verdict) bool { return old.why != "" },
		func(_ netip.Addr, old verdict) bool { return old.unknown },
		func(netip.Addr, verdict) bool { return true },
	} {
		if len(v.known) >= mostVerdicts {
			maps.DeleteFunc(v.known, worthless)
		}
	}
	v.known[address] = now
}

// budget bounds the checks that clients cause: all together, and those of one address or network.
type budget struct {
	rate  rate.Limit
	burst int
	all   *rate.Limiter

	mu   sync.Mutex
	each map[netip.Prefix]*rate.Limiter
}

func newBudget(perSecond rate.Limit, burst int) *budget {
	all := rate.NewLimiter(perSecond, burst)
	return &budget{rate: perSecond, burst: burst, all: all, each: map[netip.Prefix]*rate.Limiter{}}
}

// allow takes one check. One network gets a third of all.
func (b *budget) allow(address netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := groupOf(address, false).of
	own := b.each[of]
	if own == nil {
		if len(b.each) >= mostVerdicts {
			clear(b.each)
		}
		own = rate.NewLimiter(b.rate/3, max(1, b.burst/3))
		b.each[of] = own
	}
	return own.Allow() && b.all.Allow()
}

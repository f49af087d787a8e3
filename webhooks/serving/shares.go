package serving

import (
	"net/netip"
	"sync"
)

// uncheckedOfOne is the part of all requests that one client may have waiting for a check. All that wait have half.
const uncheckedOfOne = 8

// shares count what clients hold.
type shares struct {
	most Limits

	mu   sync.Mutex
	all  held
	each map[netip.Addr]*held
}

// held is what one client, or all, have in use.
type held struct {
	requests int
	// unchecked are requests whose client waits for a check.
	unchecked int
	memory    int64
}

func newShares(most Limits) *shares { return &shares{most: most, each: map[netip.Addr]*held{}} }

// take adds to what a client holds, if neither its half nor the whole is exceeded.
func (s *shares) take(client netip.Addr, more held) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.each[client]
	if own == nil {
		own = &held{}
	}
	if !s.fits(s.all, more, 1) || !s.fits(*own, more, 2) {
		return false
	}
	s.each[client] = own
	s.all.add(more)
	own.add(more)
	return true
}

func (s *shares) fits(now, more held, part int) bool {
	now.add(more)
	unchecked := max(1, s.most.Requests/2)
	if part > 1 {
		unchecked = max(1, s.most.Requests/uncheckedOfOne)
	}
	return now.unchecked <= unchecked && now.requests <= s.most.Requests/part && now.memory <= s.most.Memory/int64(part)
}

// give returns what a client held.
func (s *shares) give(client netip.Addr, less held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.each[client]
	less = held{-less.requests, -less.unchecked, -less.memory}
	s.all.add(less)
	own.add(less)
	if *own == (held{}) {
		delete(s.each, client)
	}
}

func (h *held) add(more held) {
	h.requests += more.requests
	h.unchecked += more.unchecked
	h.memory += more.memory
}

// share is what one request holds.
type share struct {
	of     *shares
	client netip.Addr
	held   held
}

// request starts one, whose client waits for a check or not.
func (s *shares) request(client netip.Addr, waits bool) (*share, bool) {
	one := held{requests: 1}
	if waits {
		one.unchecked = 1
	}
	return &share{of: s, client: client, held: one}, s.take(client, one)
}

// reserve adds memory.
func (s *share) reserve(n int64) bool {
	if !s.of.take(s.client, held{memory: n}) {
		return false
	}
	s.held.memory += n
	return true
}

// checked is called when the client has passed the check.
func (s *share) checked() {
	if s.held.unchecked > 0 {
		s.of.give(s.client, held{unchecked: s.held.unchecked})
		s.held.unchecked = 0
	}
}

// end gives all back.
func (s *share) end() { s.of.give(s.client, s.held) }

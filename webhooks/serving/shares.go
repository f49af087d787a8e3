package serving

import (
	"net/netip"
	"sync"
)

const (
	// uncheckedOfOne is the part of all requests that one client may have waiting for a check. All that wait have half.
	uncheckedOfOne = 8
	// A request is small while it holds less than smallest and less than a smallOfAll of the memory. A quarter of the
	// memory, and of what one client may hold, is kept for small requests: reviews of pods are small, and those of
	// large templates wait for dry runs.
	smallest, smallOfAll = 2 << 20, 64
)

// shares count what clients hold, and what reviews of a namespace hold.
type shares struct {
	most  Limits
	meter meter

	mu      sync.Mutex
	all     held
	waiting int
	each    map[netip.Addr]*held
	tenants map[tenant]*queue
}

// held is what one client, or all, have in use.
type held struct {
	requests int
	// unchecked are requests whose client waits for a check.
	unchecked int
	// memory of all requests, and of those that are not small.
	memory, large int64
}

func newShares(most Limits, m meter) *shares {
	m.limit(most.Memory)
	return &shares{most: most, meter: m, each: map[netip.Addr]*held{}, tenants: map[tenant]*queue{}}
}

// largest is what one request may hold.
func (s *shares) largest() int64 { return largeOf(s.most.Memory / 2) }

// largeOf is what requests that are not small may hold of a share.
func largeOf(memory int64) int64 { return memory / 4 * 3 }

// take adds to what a client holds, if neither its half nor the whole is exceeded. The caller holds the lock.
func (s *shares) take(client netip.Addr, more held) bool {
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
	s.meter.show(s.all, s.waiting)
	return true
}

func (s *shares) fits(now, more held, part int) bool {
	now.add(more)
	unchecked := max(1, s.most.Requests/2)
	if part > 1 {
		unchecked = max(1, s.most.Requests/uncheckedOfOne)
	}
	memory := s.most.Memory / int64(part)
	return now.unchecked <= unchecked && now.requests <= s.most.Requests/part && now.memory <= memory &&
		now.large <= largeOf(memory)
}

// give returns what a client held. The caller holds the lock.
func (s *shares) give(client netip.Addr, less held) {
	own := s.each[client]
	less = held{-less.requests, -less.unchecked, -less.memory, -less.large}
	s.all.add(less)
	own.add(less)
	if *own == (held{}) {
		delete(s.each, client)
	}
	s.meter.show(s.all, s.waiting)
}

func (h *held) add(more held) {
	h.requests += more.requests
	h.unchecked += more.unchecked
	h.memory += more.memory
	h.large += more.large
}

// share is what one request holds.
type share struct {
	of     *shares
	client netip.Addr
	held   held
	// queue is that of its namespace, once this is known, and running whether it has passed the queue.
	queue   *queue
	running bool
}

// request starts one, whose client waits for a check or not.
func (s *shares) request(client netip.Addr, waits bool) (*share, bool) {
	one := held{requests: 1}
	if waits {
		one.unchecked = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &share{of: s, client: client, held: one}, s.take(client, one)
}

// checked is called when the client has passed the check.
func (s *share) checked() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.held.unchecked > 0 {
		s.of.give(s.client, held{unchecked: s.held.unchecked})
		s.held.unchecked = 0
	}
}

// add adds memory. The caller holds the lock.
func (s *share) add(n int64) bool {
	more := held{memory: n}
	if total := s.held.memory + n; total > min(smallest, s.of.most.Memory/smallOfAll) {
		more.large = total - s.held.large
	}
	if !s.of.take(s.client, more) {
		return false
	}
	s.held.add(more)
	if s.queue != nil {
		s.queue.memory += n
	}
	return true
}

// end gives all back.
func (s *share) end() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.give(s.client, s.held)
	s.leave()
}

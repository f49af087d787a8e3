package serving

import (
	"net"
	"net/netip"
	"sync"
)

// shares count what clients hold.
type shares struct {
	most Limits

	mu   sync.Mutex
	all  held
	each map[netip.Addr]*held
}

// held is what one client, or all, have in use.
type held struct {
	connections, requests int
	memory                int64
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
	return now.connections <= s.most.Connections/part && now.requests <= s.most.Requests/part && now.memory <= s.most.Memory/int64(part)
}

// give returns what a client held.
func (s *shares) give(client netip.Addr, less held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.each[client]
	less = held{-less.connections, -less.requests, -less.memory}
	s.all.add(less)
	own.add(less)
	if *own == (held{}) {
		delete(s.each, client)
	}
}

func (h *held) add(more held) {
	h.connections += more.connections
	h.requests += more.requests
	h.memory += more.memory
}

// share is what one request holds.
type share struct {
	of     *shares
	client netip.Addr
	held   held
}

// request starts one.
func (s *shares) request(client netip.Addr) (*share, bool) {
	one := held{requests: 1}
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

// end gives all back.
func (s *share) end() { s.of.give(s.client, s.held) }

// limit closes the connections of a listener that exceed the limit.
func (g *gate) limit(listener net.Listener) net.Listener {
	return &limited{Listener: listener, gate: g}
}

type limited struct {
	net.Listener

	gate *gate
}

// Accept returns the next connection within the limits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // net/http compares it
		}
		client := addressOf(c.RemoteAddr().String())
		if one := (held{connections: 1}); !l.gate.verdicts.refused(client) && l.gate.shares.take(client, one) {
			return &counted{Conn: c, end: sync.OnceFunc(func() { l.gate.shares.give(client, one) })}, nil
		}
		l.gate.meter.refused(busyConnections)
		_ = c.Close()
	}
}

// counted is a connection that gives its share back.
type counted struct {
	net.Conn

	end func()
}

// Close closes the connection.
func (c *counted) Close() error {
	defer c.end()
	return c.Conn.Close() //nolint:wrapcheck // net/http compares it
}

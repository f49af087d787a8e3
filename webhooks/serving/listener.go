package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of a listener.
type Bounds struct {
	// Name of the listener in metrics.
	Name string
	// Connections is how many may be open. Default 1024.
	Connections int
	// Known reports, without waiting, whether an address is that of a client for which half of the connections are
	// kept. The loopback address is known. Nil knows no other one.
	Known func(address netip.Addr) bool
	// Registerer of the metrics of connections; nil for none.
	Registerer prometheus.Registerer
}

// Bound returns a listener with at most so many open connections: of a stranger a sixteenth, of all strangers half.
// Where there is no room, the oldest connection of the client that has most of them is closed for a new one.
func Bound(listener net.Listener, b Bounds) (net.Listener, error) {
	if b.Connections == 0 {
		b.Connections = connectionsByDefault
	}
	if b.Connections < 2 {
		return nil, fmt.Errorf("bound listener: %w", errors.New("the limit of connections must be at least 2"))
	}
	m, err := newCounts(b.Registerer, b.Name)
	if err != nil {
		return nil, fmt.Errorf("bound listener: %w", err)
	}
	standing := func(address netip.Addr) standing {
		if isLoopback(address) || b.Known != nil && b.Known(address) {
			return known
		}
		return stranger
	}
	return newLimited(listener, b.Connections, standing, m), nil
}

// standing of a client, by its address.
type standing int

const (
	stranger standing = iota
	// answered is a stranger of which nothing is known, and which was looked up and answered.
	answered
	known
	refused
)

// isLoopback reports whether a client is in this process, or beside it in its pod.
func isLoopback(address netip.Addr) bool {
	return address == netip.IPv6Loopback() || address == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// limited is a listener whose connections are bounded.
type limited struct {
	net.Listener

	standing func(address netip.Addr) standing
	counts   counts

	mu    sync.Mutex
	state *connections
	held  map[*connection]net.Conn
}

func newLimited(listener net.Listener, most int, standing func(netip.Addr) standing, counts counts) *limited {
	return &limited{
		Listener: listener, standing: standing, counts: counts,
		state: newConnections(most), held: map[*connection]net.Conn{},
	}
}

// Accept returns the next connection within the limits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // net/http compares it
		}
		if accepted := l.admit(c); accepted != nil {
			return accepted, nil
		}
		l.counts.refuse()
		_ = c.Close()
	}
}

// admit is nil where there is no room.
func (l *limited) admit(c net.Conn) net.Conn {
	client := addressOf(c.RemoteAddr().String())
	is := l.standing(client)
	if is == refused {
		return nil
	}
	l.mu.Lock()
	accepted, replaced := l.state.open(client, is)
	var old net.Conn
	if replaced != nil {
		old = l.held[replaced]
		delete(l.held, replaced)
	}
	if accepted != nil {
		l.held[accepted] = c
	}
	l.counts.show(l.state)
	l.mu.Unlock()
	if old != nil {
		l.counts.refuse()
		_ = old.Close()
	}
	if accepted == nil {
		return nil
	}
	return &counted{Conn: c, of: l, as: accepted}
}

// counted is a connection that gives its share back.
type counted struct {
	net.Conn

	of *limited
	as *connection
}

// Close closes the connection.
func (c *counted) Close() error {
	c.of.mu.Lock()
	c.of.state.end(c.as)
	delete(c.of.held, c.as)
	c.of.counts.show(c.of.state)
	c.of.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // net/http compares it
}

// carries records whether the connection carries a request now.
func (c *counted) carries(active bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.state.carries(c.as, active)
}

// watch is for http.Server.ConnState.
func watch(c net.Conn, now http.ConnState) {
	if one := countedOf(c); one != nil {
		switch now {
		case http.StateActive:
			one.carries(true)
		case http.StateIdle:
			one.carries(false)
		}
	}
}

// countedOf returns the counted connection below TLS; nil for another one.
func countedOf(c net.Conn) *counted {
	if secure, is := c.(*tls.Conn); is {
		c = secure.NetConn()
	}
	one, _ := c.(*counted)
	return one
}

// spoke records that a valid request came over the connection.
func (c *counted) spoke() {
	is := c.of.standing(c.as.address)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.state.spoke(c.as, is == known)
	c.of.counts.show(c.of.state)
}

// carrier is the key of the connection in the context of a request.
type carrier struct{}

// withConnection is for http.Server.ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, carrier{}, countedOf(c))
}

// spoke records a valid request.
func spoke(ctx context.Context) {
	if c, _ := ctx.Value(carrier{}).(*counted); c != nil {
		c.spoke()
	}
}

package serving

import (
	"cmp"
	"fmt"
	"net"
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
	// PerAddress is how many connections of one client may be open. Default a quarter of all.
	PerAddress int
	// Registerer of the metrics of connections; nil for none.
	Registerer prometheus.Registerer
}

// Bound returns a listener that closes new connections beyond the bounds. Connections from 127.0.0.1 and ::1 do not
// count: their clients are in the same pod.
func Bound(listener net.Listener, b Bounds) (net.Listener, error) {
	b.Connections = cmp.Or(b.Connections, defaultConnections)
	b.PerAddress = cmp.Or(b.PerAddress, max(1, b.Connections/4))
	m, err := newConnectionMetrics(b.Registerer, b.Name)
	if err != nil {
		return nil, fmt.Errorf("bound listener: %w", err)
	}
	return &bounded{Listener: listener, bounds: b, metrics: m, open: map[netip.Addr]int{}}, nil
}

// bounded is a listener that counts its connections.
type bounded struct {
	net.Listener

	bounds  Bounds
	metrics connectionMetrics

	mu    sync.Mutex
	total int
	open  map[netip.Addr]int
}

// Accept returns the next connection within the bounds.
func (l *bounded) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // net/http compares it
		}
		from := addressOf(c)
		if from == netip.IPv6Loopback() || from == netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
			return c, nil
		}
		if l.add(from) {
			return &counted{Conn: c, release: sync.OnceFunc(func() { l.remove(from) })}, nil
		}
		l.metrics.refused.Inc()
		_ = c.Close()
	}
}

func (l *bounded) add(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= l.bounds.Connections || l.open[from] >= l.bounds.PerAddress {
		return false
	}
	l.total++
	l.open[from]++
	l.metrics.open.Inc()
	return true
}

func (l *bounded) remove(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
	l.metrics.open.Dec()
}

// counted is a connection that leaves the count when it is closed.
type counted struct {
	net.Conn

	release func()
}

// Close closes the connection.
func (c *counted) Close() error {
	c.release()
	return c.Conn.Close() //nolint:wrapcheck // net/http compares it
}

// addressOf returns the address of a client without its port. Clients without an address count as one.
func addressOf(c net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

package serving_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/webhooks/serving"
)

// One address, and all together, have at most their bound of connections. A closed one makes room.
func TestBound(t *testing.T) {
	plain, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{registry: prometheus.NewPedanticRegistry()}
	listener, err := serving.Bound(plain, serving.Bounds{
		Name: "a", Connections: 6, PerAddress: 4, Registerer: g.registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, err := net.SplitHostPort(plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	g.address = net.JoinHostPort("127.0.0.1", port)
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "a")
			accepted <- c
		}
	}()
	connects := func(from string) bool {
		_, err := g.dial(t, from).Read(make([]byte, 1))
		return err == nil
	}
	for _, c := range []struct {
		why, from string
		n, want   int
	}{
		{"the bound of an address", attacker, 10, 4},
		{"what is left of all", "127.0.0.3", 3, 2},
		{"all are taken", apiServer, 1, 0},
		{"the loopback does not count", "127.0.0.1", 2, 2},
	} {
		got := 0
		for range c.n {
			if connects(c.from) {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%s: %d connections, want %d", c.why, got, c.want)
		}
	}
	first := <-accepted
	for range 2 { // a connection leaves the count once
		_ = first.Close()
	}
	if !connects("127.0.0.3") || connects("127.0.0.3") {
		t.Error("a closed connection does not make room for one")
	}
	if open, refused := g.value(t, "kruisekit_connections", "a"),
		g.value(t, "kruisekit_connections_refused_total", "a"); open != 6 || refused != 9 {
		t.Errorf("%d open, %d refused, want 6 and 9", open, refused)
	}
}

// One address opens many connections and sends nothing. Another one is answered, and so is a probe of the process.
func TestSilentConnections(t *testing.T) {
	g := start(t, serving.Options{Limits: serving.Limits{Connections: 32, Read: time.Hour}})
	for range 40 {
		g.dial(t, attacker)
	}
	eventually(t, "the server refuses some", func() bool {
		return g.value(t, "kruisekit_connections_refused_total", "webhook") == 32
	})
	g.mustAnswer(t, apiServer)
	g.mustAnswer(t, "127.0.0.1")
}

// The server closes connections whose handshake, header or body does not end, and answers others meanwhile.
func TestStalledClients(t *testing.T) {
	secure := func(c net.Conn) net.Conn { return tls.Client(c, &tls.Config{InsecureSkipVerify: true}) }
	plain := func(c net.Conn) net.Conn { return c }
	cases := map[string]struct {
		why, sent string
		layer     func(net.Conn) net.Conn
	}{
		"half a handshake": {"a record without an end", "\x16\x03\x01\x02\x00\x01", plain},
		"no request":       {"a handshake alone", "", secure},
		"half a header":    {"a header without an end", "POST " + path + " HTTP/1.1\r\nHost: a\r\n", secure},
		"half a body": {
			"a declared length", "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 7000000\r\n\r\n{", secure,
		},
		"a chunk": {
			"no declared length", "POST " + path + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{", secure,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stall := func(g *ground, n int) []net.Conn {
				var open []net.Conn
				for range n {
					one := c.layer(g.dial(t, attacker))
					if handshake, ok := one.(*tls.Conn); ok {
						if err := handshake.HandshakeContext(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := io.WriteString(one, c.sent); err != nil {
						t.Fatal(err)
					}
					open = append(open, one)
				}
				return open
			}
			// Bodies that declare most of the memory, and do not arrive.
			patient := start(t, serving.Options{Limits: serving.Limits{Read: time.Hour, Answer: time.Hour}})
			stall(patient, 50)
			patient.mustAnswer(t, apiServer)
			if n := patient.calls.Load(); n != 1 {
				t.Errorf("%s: %d calls of the handler, want that of the API server", c.why, n)
			}
			// The idle time of a connection is the time for its next request here.
			if name == "no request" {
				return
			}
			g := start(t, serving.Options{Limits: serving.Limits{Read: time.Second}})
			for _, one := range stall(g, 3) {
				_ = one.SetReadDeadline(time.Now().Add(late))
				if _, err := io.Copy(io.Discard, one); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("%s: the connection is still open", c.why)
				}
			}
			eventually(t, "the connections leave the count", func() bool {
				return g.value(t, "kruisekit_connections", "webhook") == 0
			})
			if n := g.calls.Load(); n != 0 {
				t.Errorf("%s: the handler ran %d times", c.why, n)
			}
		})
	}
}

package serving_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/webhooks/serving"
)

// Connections that do nothing are closed, and one client cannot have them all.
func TestConnections(t *testing.T) {
	g := start(t, serving.Options{Limits: quick()})
	var open []net.Conn
	for range 60 {
		c, err := dialer("127.0.0.3").Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		open = append(open, c)
	}
	if code, text := g.post(t, newClient(t, "127.0.0.2"), path, strings.NewReader("{}")); code != http.StatusOK {
		t.Errorf("another client is answered %d %s", code, text)
	}
	deadline := time.Now().Add(10 * time.Second)
	for i, c := range open {
		_ = c.SetReadDeadline(deadline)
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d, which is silent, is still open", i)
		}
	}
	if n := g.refused(t, "connections"); n != 56 {
		t.Errorf("%d of 60 connections of one client were closed for newer ones, want all but 4", n)
	}
}

// Two pods without any right open connections as fast as they can, and send nothing. API servers are answered all the
// same.
func TestSilentConnections(t *testing.T) {
	const server = "127.0.0.9"
	pods := func(_ context.Context, a netip.Addr) (serving.Verdict, error) {
		if a != netip.MustParseAddr(server) {
			return serving.Verdict{Why: "the client is a pod"}, nil
		}
		return serving.Verdict{}, nil
	}
	known := func(_ context.Context, a netip.Addr) bool { return a == netip.MustParseAddr(server) }
	cases := map[string]struct {
		why     string
		clients serving.Clients
	}{
		"known":     {"half of the connections are kept for it", serving.Clients{Known: known}},
		"looked up": {"pods cannot connect again after their lookup", serving.Clients{Check: pods}},
		"unknown":   {"a stranger that opens many connections closes its own", serving.Clients{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := start(t, serving.Options{Clients: c.clients, Limits: serving.Limits{Connections: 64}})
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer cancel()
			var opened atomic.Int64
			for i := range 64 {
				all.Add(1)
				go func() {
					defer all.Done()
					keepSilent(ctx, []string{"127.0.0.2", "127.0.0.3"}[i%2], g.address, &opened)
				}()
			}
			eventually(t, "the pods have opened many connections", func() bool { return opened.Load() > 100 })
			for range 20 {
				client := newClient(t, server)
				client.Timeout = 10 * time.Second
				if code, text := g.post(t, client, path, strings.NewReader("{}")); code != http.StatusOK {
					t.Fatalf("%s: the API server is answered %d %s", c.why, code, text)
				}
				client.CloseIdleConnections()
			}
		})
	}
}

// keepSilent opens a connection, and another one when it is closed.
func keepSilent(ctx context.Context, from, address string, opened *atomic.Int64) {
	for ctx.Err() == nil {
		c, err := dialer(from).DialContext(ctx, "tcp", address)
		if err != nil {
			runtime.Gosched()
			continue
		}
		opened.Add(1)
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		_, _ = c.Read(make([]byte, 1)) // until the server closes it
		stop()
		_ = c.Close()
	}
}

//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// Header names the version of the sidecar that answered.
const Header = "Sidecar-Version"

// serve passes requests on until the context ends, and ends what it has begun. What waits in the queue by then is the
// other's, who has the same listener.
func serve(ctx context.Context, o options, version string) error {
	target, err := url.Parse(o.to)
	if err != nil {
		return fmt.Errorf("parse --to: %w", err)
	}
	listener, err := listen(ctx, o.socket, o.listen)
	if err != nil {
		return err
	}
	if err := give(ctx, o.socket, version, listener); err != nil {
		return err
	}
	busy := &connections{at: map[net.Conn]http.ConnState{}}
	server := &http.Server{
		Handler: leaving(ctx, proxy(target, version)), ConnState: busy.set, ReadHeaderTimeout: 10 * time.Second,
	}
	// Shutdown would drop requests that come in over connections that are there already.
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	if err := server.Serve(listener); ctx.Err() == nil {
		return fmt.Errorf("serve: %w", err)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	busy.wait(ending)
	return server.Close()
}

// listen takes the listener of the process that serves, or makes one where none does.
func listen(ctx context.Context, path, address string) (*net.TCPListener, error) {
	taken, _, err := take(ctx, path)
	if err != nil {
		taken, err = new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	listener, ok := taken.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("listen: %s is not TCP", taken.Addr().Network())
	}
	return listener, nil
}

func proxy(target *url.URL, version string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set(Header, version)
			return nil
		},
	}
}

// leaving asks clients to reconnect, to the process that accepts then, once the context has ended.
func leaving(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// connections knows in which state each is.
type connections struct {
	lock sync.Mutex
	at   map[net.Conn]http.ConnState
}

func (c *connections) set(conn net.Conn, state http.ConnState) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.at[conn] = state
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.at, conn)
	}
}

// wait until none has a request, or may bring its first.
func (c *connections) wait(ctx context.Context) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for c.busy() {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

func (c *connections) busy() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, state := range c.at {
		if state != http.StateIdle {
			return true
		}
	}
	return false
}

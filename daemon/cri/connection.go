package cri

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// Connected reports whether there is a connection, and returns a channel that is closed when that changes. Several may
// wait:
//
//	for ctx.Err() == nil {
//		up, changed := runtime.Connected()
//		if up {
//			... // try again what has failed
//		}
//		select {
//		case <-changed:
//		case <-ctx.Done():
//		}
//	}
//
// A connection that is lost and made again within moments may go unnoticed.
func (r *Runtime) Connected() (up bool, changed <-chan struct{}) {
	r.link.mu.Lock()
	defer r.link.mu.Unlock()
	return r.link.up, r.link.changed
}

// link keeps the connection, which gRPC alone would make again only with the next call.
type link struct {
	address string
	conn    *grpc.ClientConn
	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	up      bool
	changed chan struct{}
	failure error // of the last attempt, nil after one that worked
}

func newLink(address string) *link {
	return &link{address: address, changed: make(chan struct{}), stopped: make(chan struct{})}
}

// keep makes the connection again whenever it is lost, until close.
func (l *link) keep(ctx context.Context) {
	defer close(l.stopped)
	defer l.set(false)
	for {
		state := l.conn.GetState()
		if state == connectivity.Idle {
			l.conn.Connect()
		}
		l.set(state == connectivity.Ready)
		if !l.conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

func (l *link) set(up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up != up {
		l.up = up
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func (l *link) close() error {
	l.stop()
	err := l.conn.Close()
	<-l.stopped
	return err //nolint:wrapcheck // the caller says what is closed
}

// dial is called by gRPC, whose states do not say why an attempt failed.
func (l *link) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := dial(ctx, l.address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
	return conn, err
}

// ready waits until calls can be made, and returns the last failure to connect when the context ends before. With once,
// the first failure ends the wait, too.
func (l *link) ready(ctx context.Context, once bool) error {
	for {
		state := l.conn.GetState()
		switch {
		case state == connectivity.Ready:
			return nil
		case state == connectivity.Shutdown:
			return errors.New("closed")
		case state == connectivity.TransientFailure && once, !l.conn.WaitForStateChange(ctx, state):
			return l.lastFailure()
		}
	}
}

func (l *link) lastFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		return errors.New("it does not speak gRPC")
	}
	return l.failure
}

package cri

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// Connection says how the connection to a runtime stands.
type Connection struct {
	// Up says that there is one.
	Up bool
	// Generation counts how often it has been made. Whatever was learnt in an earlier generation may be wrong: the
	// runtime may have restarted, and events have been lost.
	Generation uint64
}

// Connection returns how the connection stands, and a channel that is closed when that changes. Several may wait:
//
//	for seen := uint64(0); ; {
//		now, changed := runtime.Connection()
//		if now.Up && now.Generation != seen {
//			seen = now.Generation
//			... // list again
//		}
//		select {
//		case <-changed:
//		case <-ctx.Done():
//			return
//		}
//	}
func (r *Runtime) Connection() (Connection, <-chan struct{}) {
	r.link.mu.Lock()
	defer r.link.mu.Unlock()
	return r.link.now, r.link.changed
}

// link makes the connections that gRPC asks for, and so counts them. gRPC's own states can come and go unseen.
type link struct {
	address string
	conn    *grpc.ClientConn
	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	now     Connection
	changed chan struct{}
	open    int   // connections; two, while one is given up and drained
	failure error // of the last attempt, nil after one that worked
}

func newLink(address string) *link {
	return &link{address: address, changed: make(chan struct{}), stopped: make(chan struct{})}
}

// keep makes the connection again whenever it is lost, until close. gRPC alone would wait for the next call.
func (l *link) keep(ctx context.Context) {
	defer close(l.stopped)
	for {
		state := l.conn.GetState()
		if state == connectivity.Idle {
			l.conn.Connect()
		}
		if !l.conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

func (l *link) close() error {
	l.stop()
	err := l.conn.Close()
	<-l.stopped
	return err //nolint:wrapcheck // the caller says what is closed
}

// dial is called by gRPC.
func (l *link) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := dial(ctx, l.address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
	if err != nil {
		return nil, err
	}
	l.open++
	l.set(Connection{Up: true, Generation: l.now.Generation + 1})
	return &connection{Conn: conn, closed: sync.OnceFunc(l.lost)}, nil
}

func (l *link) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open--; l.open == 0 {
		l.set(Connection{Generation: l.now.Generation})
	}
}

func (l *link) set(now Connection) {
	l.now = now
	close(l.changed)
	l.changed = make(chan struct{})
}

// ready waits until calls can be made, and returns the last failure to connect when the context ends before.
func (l *link) ready(ctx context.Context) error {
	for {
		state := l.conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Shutdown:
			return errors.New("closed")
		}
		if !l.conn.WaitForStateChange(ctx, state) {
			return l.lastFailure()
		}
	}
}

// first waits until calls can be made, or the first attempt has failed.
func (l *link) first(ctx context.Context) error {
	for {
		state := l.conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure:
			return l.lastFailure()
		}
		if !l.conn.WaitForStateChange(ctx, state) {
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

// connection calls closed when it is closed, by gRPC or after the runtime has closed it.
type connection struct {
	net.Conn
	closed func()
}

// Close closes the connection.
func (c *connection) Close() error {
	defer c.closed()
	return c.Conn.Close() //nolint:wrapcheck // gRPC is the reader
}

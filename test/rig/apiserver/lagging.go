package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lagging is a client that writes to a server and reads as from a cache that lags.
type Lagging struct {
	// WithWatch writes.
	client.WithWatch
	// View is what reads show; nil for what the server holds now.
	View *Server
	// Only reports which objects and lists the view shows, others are read as they are; nil for all.
	Only func(runtime.Object) bool

	server *Server
}

// Lagging returns a client that shows what the server holds now, until it is frozen.
func (s *Server) Lagging() *Lagging { return &Lagging{WithWatch: s, server: s} }

// Freeze has reads show what the server holds now, until the next call.
func (l *Lagging) Freeze() { l.View = l.server.Snapshot() }

// Thaw has reads show again what the server holds.
func (l *Lagging) Thaw() { l.View = nil }

// IsFrozen reports whether reads show an older state.
func (l *Lagging) IsFrozen() bool { return l.View != nil }

// Get implements client.Reader.
func (l *Lagging) Get(ctx context.Context, name client.ObjectKey, into client.Object, o ...client.GetOption) error {
	return l.reader(into).Get(ctx, name, into, o...)
}

// List implements client.Reader.
func (l *Lagging) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	return l.reader(into).List(ctx, into, o...)
}

func (l *Lagging) reader(into runtime.Object) *Server {
	if l.View != nil && (l.Only == nil || l.Only(into)) {
		return l.View
	}
	return l.server
}

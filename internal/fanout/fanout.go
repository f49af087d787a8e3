package fanout

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// gather is how long a handler waits for others. Controllers start at the same time. A handler that comes later has a
// listener of its own.
const gather = 100 * time.Millisecond

// New returns a constructor of caches that have one listener for the handlers of a typed object's kind.
func New(of client.Object) cache.NewCacheFunc {
	return func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		made, err := cache.New(config, o)
		if err != nil {
			return nil, err //nolint:wrapcheck // as without this package
		}
		gvk, err := apiutil.GVKForObject(of, o.Scheme)
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the type
		}
		return &shared{Cache: made, of: reflect.TypeOf(of), gvk: gvk}, nil
	}
}

// shared is a cache that has one informer wrapped.
type shared struct {
	cache.Cache

	of  reflect.Type
	gvk schema.GroupVersionKind

	mu sync.Mutex
	// known is the informer, wrapped; nil before its first use and after its removal.
	known *informer
}

// GetInformer wraps the informer of the typed kind.
func (s *shared) GetInformer(
	ctx context.Context, of client.Object, o ...cache.InformerGetOption,
) (cache.Informer, error) {
	found, err := s.Cache.GetInformer(ctx, of, o...)
	if err != nil || reflect.TypeOf(of) != s.of {
		return found, err //nolint:wrapcheck // as without this package
	}
	return s.wrapped(found), nil
}

// GetInformerForKind wraps the informer of the typed kind.
func (s *shared) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, o ...cache.InformerGetOption,
) (cache.Informer, error) {
	found, err := s.Cache.GetInformerForKind(ctx, gvk, o...)
	if err != nil || gvk != s.gvk {
		return found, err //nolint:wrapcheck // as without this package
	}
	return s.wrapped(found), nil
}

// RemoveInformer forgets the wrapped informer.
func (s *shared) RemoveInformer(ctx context.Context, of client.Object) error {
	if reflect.TypeOf(of) == s.of {
		s.mu.Lock()
		s.known = nil
		s.mu.Unlock()
	}
	return s.Cache.RemoveInformer(ctx, of) //nolint:wrapcheck // as without this package
}

func (s *shared) wrapped(found cache.Informer) *informer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = &informer{Informer: found}
	}
	return s.known
}

// informer registers the handlers that come together as one.
type informer struct {
	cache.Informer

	mu sync.Mutex
	// open takes handlers until it is registered; nil if the next handler opens another one.
	open *listener
}

// listener is a handler that has others called.
type listener struct {
	// handlers are replaced as a whole.
	handlers atomic.Pointer[[]*member]
	// done is closed when the listener is registered, or cannot be.
	done       chan struct{}
	registered toolscache.ResourceEventHandlerRegistration
	err        error
}

// member is a handler of a listener. Handlers themselves may be values that cannot be compared.
type member struct {
	toolscache.ResourceEventHandler
}

// registration is that of one member of a listener.
type registration struct {
	toolscache.ResourceEventHandlerRegistration

	of *listener
	is *member
}

// AddEventHandler adds a handler without options.
func (i *informer) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithOptions adds a handler, and returns when it is registered together with those that were added in
// the meantime. A handler with a resync period of its own has a listener of its own.
func (i *informer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, o toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	if o.ResyncPeriod != nil {
		return i.Informer.AddEventHandlerWithOptions(handler, o) //nolint:wrapcheck // as without this package
	}
	m := &member{handler}
	l := i.join(m, o)
	if <-l.done; l.err != nil {
		return nil, l.err
	}
	return &registration{l.registered, l, m}, nil
}

// join adds a member to the listener that is open.
func (i *informer) join(m *member, o toolscache.HandlerOptions) *listener {
	i.mu.Lock()
	defer i.mu.Unlock()
	if l := i.open; l != nil { // which calls none yet
		handlers := append(*l.handlers.Load(), m)
		l.handlers.Store(&handlers)
		return l
	}
	l := &listener{done: make(chan struct{})}
	l.handlers.Store(&[]*member{m})
	i.open = l
	time.AfterFunc(gather, func() {
		i.mu.Lock()
		i.open = nil
		i.mu.Unlock()
		l.registered, l.err = i.Informer.AddEventHandlerWithOptions(l, o)
		close(l.done)
	})
	return l
}

// RemoveEventHandler removes one handler, and leaves the others of its listener.
func (i *informer) RemoveEventHandler(of toolscache.ResourceEventHandlerRegistration) error {
	r, is := of.(*registration)
	if !is {
		return i.Informer.RemoveEventHandler(of) //nolint:wrapcheck // as without this package
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var left []*member
	for _, m := range *r.of.handlers.Load() {
		if m != r.is {
			left = append(left, m)
		}
	}
	if r.of.handlers.Store(&left); len(left) > 0 {
		return nil
	}
	return i.Informer.RemoveEventHandler(r.of.registered) //nolint:wrapcheck // as without this package
}

// OnAdd calls the handlers one after the other.
func (l *listener) OnAdd(object any, initial bool) {
	for _, handler := range *l.handlers.Load() {
		handler.OnAdd(object, initial)
	}
}

// OnUpdate calls the handlers one after the other.
func (l *listener) OnUpdate(before, after any) {
	for _, handler := range *l.handlers.Load() {
		handler.OnUpdate(before, after)
	}
}

// OnDelete calls the handlers one after the other.
func (l *listener) OnDelete(object any) {
	for _, handler := range *l.handlers.Load() {
		handler.OnDelete(object)
	}
}

package watches

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// source is an informer that has its handlers called at once.
type source struct {
	cache.Informer

	mu       sync.Mutex
	handlers []toolscache.ResourceEventHandler
	fails    error
}

func (s *source) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return nil, s.fails
	}
	s.handlers = append(s.handlers, h)
	h.OnAdd("listed", true)
	return &handle{of: h}, nil
}

func (s *source) update() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.handlers {
		h.OnUpdate("a", "b")
		h.OnDelete("b")
	}
}

type handle struct {
	toolscache.ResourceEventHandlerRegistration

	of toolscache.ResourceEventHandler
}

// told keeps the events of a handler.
type told struct{ events []string }

func (t *told) OnAdd(o any, initial bool) {
	t.events = append(t.events, fmt.Sprint("add ", o, " ", initial))
}

func (t *told) OnUpdate(a, b any) { t.events = append(t.events, fmt.Sprint("update ", a, " ", b)) }
func (t *told) OnDelete(o any)    { t.events = append(t.events, fmt.Sprint("delete ", o)) }

// add adds handlers at the same time.
func add(t *testing.T, i *informer, n int) ([]*told, []toolscache.ResourceEventHandlerRegistration) {
	t.Helper()
	handlers, registrations := make([]*told, n), make([]toolscache.ResourceEventHandlerRegistration, n)
	var group sync.WaitGroup
	for at := range handlers {
		handlers[at] = &told{}
		group.Add(1)
		go func() {
			defer group.Done()
			var err error
			if registrations[at], err = i.AddEventHandler(handlers[at]); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	return handlers, registrations
}

const all = "add listed true, update a b, delete b"

// Handlers that come together are one to the informer. Each sees all events in their order, also one that comes later.
func TestOneListener(t *testing.T) {
	s := &source{}
	i := &informer{Informer: s}
	early, registrations := add(t, i, 12)
	if len(s.handlers) != 1 {
		t.Fatalf("%d handlers of the informer", len(s.handlers))
	}
	late, _ := add(t, i, 1)
	s.update()
	for at, h := range append(slices.Clone(early), late...) {
		if got := strings.Join(h.events, ", "); got != all {
			t.Errorf("handler %d sees %q", at, got)
		}
	}
	if err := i.RemoveEventHandler(registrations[0]); err == nil {
		t.Error("the handlers that share the registration would go, too")
	}
}

// All handlers of a listener that cannot be registered get the error.
func TestOneListenerFails(t *testing.T) {
	s := &source{fails: errors.New("stopped")}
	i := &informer{Informer: s}
	for range 2 {
		if _, err := i.AddEventHandler(&told{}); !errors.Is(err, s.fails) {
			t.Errorf("got %v", err)
		}
	}
}

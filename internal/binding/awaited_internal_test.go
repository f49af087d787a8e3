package binding

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

// server serves kinds. It is what the mapper knows of an API server.
type server struct {
	meta.RESTMapper

	mu       sync.Mutex
	kinds    map[schema.GroupVersionKind]bool
	err      error
	requests int
}

func (s *server) install(kinds ...schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range kinds {
		s.kinds[kind] = true
	}
}

func (s *server) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[kind.WithVersion(versions[0])] && s.err == nil {
		return &meta.RESTMapping{}, nil
	}
	s.requests++
	if s.err != nil {
		return nil, s.err
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

func kind(version, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps.example.com", Version: version, Kind: name}
}

// bench runs parts with a clock that only the test moves.
type bench struct {
	*Awaited
	*server

	clock *clocktesting.FakeClock
	added chan string
	ended chan error
}

func run(t *testing.T, parts ...Part) *bench {
	t.Helper()
	b := &bench{
		server: &server{kinds: map[schema.GroupVersionKind]bool{}},
		clock:  clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
		added:  make(chan string, len(parts)), ended: make(chan error, 1),
	}
	for i := range parts {
		if name := parts[i].Name; parts[i].Add == nil {
			parts[i].Add = func(context.Context) error { b.added <- name; return nil }
		}
	}
	b.Awaited = &Awaited{mapper: b.server, clock: b.clock, logger: logr.Discard(), waiting: parts}
	go func() { b.ended <- b.Start(t.Context()) }()
	return b
}

// pass lets time pass. The looks of this time are over then.
func (b *bench) pass(d time.Duration) {
	for range d / time.Second {
		b.due()
		b.clock.Step(time.Second)
	}
	b.due()
}

// due waits until the next look is due at a time.
func (b *bench) due() {
	for !b.clock.HasWaiters() {
		runtime.Gosched()
	}
}

func (b *bench) looked() int {
	b.Awaited.mu.Lock()
	defer b.Awaited.mu.Unlock()
	return b.looks
}

// A part whose kinds are never installed costs one request for each look, and looks become rare.
func TestLooksAreCheap(t *testing.T) {
	b := run(t, Part{Name: "web", Kinds: []schema.GroupVersionKind{kind("v1", "Web"), kind("v2", "Page")}})
	sent := []int{}
	for range 4 {
		b.pass(time.Minute)
		sent = append(sent, b.requests)
	}
	// Looks after 1, 3, 7, 15 and 31 seconds, after a minute and 3 seconds, and then each minute.
	if want := []int{5, 6, 7, 8}; !slices.Equal(sent, want) {
		t.Errorf("%v requests after each minute, want %v", sent, want)
	}
}

// A part is added once, when all of its kinds are installed; others of the same install are found a second later.
func TestPartsAreAddedWhenTheirKindsAreInstalled(t *testing.T) {
	b := run(t, Part{Name: "web", Kinds: []schema.GroupVersionKind{kind("v1", "Web"), kind("v2", "Page")}},
		Part{Name: "page", Kinds: []schema.GroupVersionKind{kind("v2", "Page")}},
		Part{Name: "scale", Kinds: []schema.GroupVersionKind{kind("v2", "Scale")}})
	b.pass(10 * time.Minute)
	b.install(kind("v2", "Page"))
	looks := b.looked()
	for b.looked() == looks {
		b.pass(time.Second)
	}
	if got := <-b.added; got != "page" {
		t.Errorf("added %s", got)
	}
	b.install(kind("v1", "Web"))
	b.pass(time.Second)
	if got := <-b.added; got != "web" {
		t.Errorf("added %s", got)
	}
	b.install(kind("v2", "Scale"))
	b.clock.Step(time.Second)
	if err := <-b.ended; err != nil {
		t.Error(err)
	}
	if got := <-b.added; got != "scale" || len(b.added) > 0 || len(b.Names()) > 0 {
		t.Errorf("added %s, %d more, %v wait", got, len(b.added), b.Names())
	}
}

// Readiness, and a part that could do more with another kind, wait for the looks of 15 seconds, and not longer.
func TestPatience(t *testing.T) {
	web, page := []schema.GroupVersionKind{kind("v1", "Web")}, []schema.GroupVersionKind{kind("v1", "Page")}
	b := run(t, Part{Name: "web", Kinds: web, Optional: page}, Part{Name: "page", Kinds: page})
	b.install(kind("v1", "Web"))
	b.pass(14 * time.Second)
	err := b.Check()
	if len(b.added) > 0 || err == nil || !strings.Contains(err.Error(), "page, web") {
		t.Errorf("after 14 seconds: %d are added, readiness %v", len(b.added), err)
	}
	b.pass(time.Second)
	if got := <-b.added; got != "web" {
		t.Errorf("added %s", got)
	}
	if err := b.Check(); err != nil {
		t.Errorf("after 15 seconds: %v", err)
	}
}

// What cannot be added ends the manager, also while another part waits for the objects of its index.
func TestFailureEndsTheManager(t *testing.T) {
	broken := errors.New("broken")
	cases := map[string]func(context.Context) error{
		"broken":             func(context.Context) error { return broken },
		"index out of range": func(context.Context) error { all := make([]int, 1); _ = all[len(all)]; return nil },
	}
	for want, add := range cases {
		t.Run(want, func(t *testing.T) {
			stuck := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			b := run(t, Part{Name: "stuck", Kinds: []schema.GroupVersionKind{kind("v1", "Web")}, Add: stuck},
				Part{Name: "web", Kinds: []schema.GroupVersionKind{kind("v1", "Web")}, Add: add})
			b.install(kind("v1", "Web"))
			b.due()
			b.clock.Step(time.Second)
			if err := <-b.ended; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ended with %v", err)
			}
			if got := b.Names(); !slices.Equal(got, []string{"stuck", "web"}) {
				t.Errorf("%v are not added", got)
			}
		})
	}
}

// An API server that fails is asked again.
func TestUncertaintyIsWaitedOut(t *testing.T) {
	b := run(t, Part{Name: "web", Kinds: []schema.GroupVersionKind{kind("v1", "Web")}})
	b.install(kind("v1", "Web"))
	b.change(func(s *server) { s.err = errors.New("overloaded") })
	b.pass(time.Second)
	if len(b.added) > 0 {
		t.Error("added without its kind")
	}
	b.change(func(s *server) { s.err = nil })
	b.clock.Step(2 * time.Second)
	if err := <-b.ended; err != nil || len(b.added) != 1 {
		t.Errorf("%d are added, %v", len(b.added), err)
	}
}

// change changes the server.
func (s *server) change(to func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to(s)
}

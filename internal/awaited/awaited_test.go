package awaited

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

// server serves kinds. It is what discovery and the mapper know of an API server.
type server struct {
	meta.RESTMapper

	mu       sync.Mutex
	kinds    map[schema.GroupVersionKind]bool
	unmapped map[schema.GroupVersionKind]bool
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

func (s *server) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	list := &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "oldies/scale", Kind: "Scale"}}}
	for kind := range s.kinds {
		if kind.GroupVersion().String() == version {
			resource := metav1.APIResource{Name: strings.ToLower(kind.Kind) + "s", Kind: kind.Kind}
			list.APIResources = append(list.APIResources, resource)
		}
	}
	if s.err == nil && len(list.APIResources) == 1 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	return list, s.err
}

func (s *server) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := kind.WithVersion(versions[0])
	if s.kinds[of] && !s.unmapped[of] {
		return &meta.RESTMapping{}, nil
	}
	s.requests++
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

func kind(version, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps.example.com", Version: version, Kind: name}
}

// bench runs parts with a clock that only the test moves.
type bench struct {
	*Parts
	*server

	clock *clocktesting.FakeClock
	added chan string
	ended chan error
}

func run(t *testing.T, parts ...Part) *bench {
	t.Helper()
	b := &bench{
		server: &server{kinds: map[schema.GroupVersionKind]bool{}, unmapped: map[schema.GroupVersionKind]bool{}},
		clock:  clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
		added:  make(chan string, len(parts)), ended: make(chan error, 1),
	}
	for i := range parts {
		if name := parts[i].Name; parts[i].Add == nil {
			parts[i].Add = func(context.Context) error { b.added <- name; return nil }
		}
	}
	b.Parts = &Parts{discovery: b.server, mapper: b.server, clock: b.clock, logger: logr.Discard(), waiting: parts}
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
	b.Parts.mu.Lock()
	defer b.Parts.mu.Unlock()
	return b.looks
}

// Twenty kinds of two versions that are never installed cost two requests for each look, and looks become rare.
func TestLooksAreCheap(t *testing.T) {
	var parts []Part
	for name := range strings.SplitSeq("abcdefghij", "") {
		parts = append(parts, Part{Name: name, Kinds: []schema.GroupVersionKind{kind("v1", name), kind("v2", name)}},
			Part{Name: name + "2", Kinds: []schema.GroupVersionKind{kind("v2", name)}})
	}
	b := run(t, parts...)
	b.install(kind("v1", "Other"), kind("v2", "Other"))
	sent := []int{}
	for range 4 {
		b.pass(time.Minute)
		sent = append(sent, b.requests)
	}
	// Looks after 1, 3, 7, 15 and 31 seconds, after a minute and 3 seconds, and then each minute.
	if want := []int{10, 12, 14, 16}; !slices.Equal(sent, want) {
		t.Errorf("%v requests after each minute, want %v", sent, want)
	}
	if len(b.Names()) != 20 {
		t.Errorf("parts that wait: %v", b.Names())
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

// An API server that fails, and one of several that does not serve a kind yet, are asked again.
func TestUncertaintyIsWaitedOut(t *testing.T) {
	b := run(t, Part{Name: "web", Kinds: []schema.GroupVersionKind{kind("v1", "Web")}})
	b.install(kind("v1", "Web"))
	b.change(func(s *server) { s.err = errors.New("overloaded") })
	b.pass(time.Second)
	b.change(func(s *server) { s.err, s.unmapped = nil, map[schema.GroupVersionKind]bool{kind("v1", "Web"): true} })
	b.pass(2 * time.Second)
	if len(b.added) > 0 {
		t.Error("added without its kind")
	}
	b.change(func(s *server) { s.unmapped = nil })
	b.clock.Step(4 * time.Second)
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

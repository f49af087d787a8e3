package groupcommit_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/groupcommit"
)

// counter is an object that adds up its requests.
type counter struct{ version, sum int }

type add struct {
	n, sum int
}

// server has one counter, and a cache that may lag.
type server struct {
	mu             sync.Mutex
	stored, cached counter
	deleted        bool
	writes, reads  int
	largest        int
	// write is called before each write, without the lock.
	write func() error
	// decide is called for each decision.
	decide func() error
}

func key() groupcommit.Key {
	return groupcommit.Key{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}, UID: "1"}
}

func (s *server) Cached(groupcommit.Key) (counter, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cached, !s.deleted
}

func (s *server) Live(context.Context, groupcommit.Key) (counter, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.stored, !s.deleted, nil
}

func (s *server) Decide(_ context.Context, c counter, all []*add) (counter, bool, error) {
	s.mu.Lock()
	s.largest = max(s.largest, len(all))
	s.mu.Unlock()
	if s.decide != nil {
		if err := s.decide(); err != nil {
			return c, false, err
		}
	}
	before := c.sum
	for _, a := range all {
		c.sum += a.n
		a.sum = c.sum
	}
	return c, c.sum != before, nil
}

func (s *server) Write(_ context.Context, from, after counter) error {
	if s.write != nil {
		if err := s.write(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored.version != from.version {
		return apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	}
	s.writes++
	after.version++
	s.stored, s.cached = after, after
	return nil
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !holds() {
		if runtime.Gosched(); ctx.Err() != nil {
			t.Fatal("the condition does not hold in time")
		}
	}
}

// TestBatch: requests that arrive during a write share the next one.
func TestBatch(t *testing.T) {
	entered, open := make(chan struct{}, 2), make(chan struct{})
	s := &server{stored: counter{version: 1}, cached: counter{version: 1}}
	s.write = func() error { entered <- struct{}{}; <-open; return nil }
	c := groupcommit.New(s)
	var all sync.WaitGroup
	commit := func() {
		if err := c.Commit(t.Context(), key(), &add{n: 1}); err != nil {
			t.Error(err)
		}
	}
	all.Add(1)
	go func() {
		defer all.Done()
		commit()
	}()
	<-entered
	for range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			commit()
		}()
	}
	eventually(t, func() bool { return c.Waiting() == 20 })
	close(open)
	all.Wait()
	if s.writes != 2 || s.largest != 20 || s.stored.sum != 21 || s.reads != 0 {
		t.Errorf("%d writes, %d in one, sum %d, %d live reads", s.writes, s.largest, s.stored.sum, s.reads)
	}
}

// TestConflict: after a conflict a batch is decided again upon the live object, with the requests of meanwhile.
func TestConflict(t *testing.T) {
	entered, open := make(chan struct{}, 2), make(chan struct{})
	s := &server{stored: counter{version: 7, sum: 100}, cached: counter{version: 1}}
	s.write = func() error { entered <- struct{}{}; <-open; return nil }
	c := groupcommit.New(s)
	first, second := &add{n: 1}, &add{n: 1}
	done := make(chan error, 2)
	go func() { done <- c.Commit(t.Context(), key(), first) }()
	<-entered
	go func() { done <- c.Commit(t.Context(), key(), second) }()
	eventually(t, func() bool { return c.Waiting() == 1 })
	close(open)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	if first.sum != 101 || second.sum != 102 || s.writes != 1 || s.reads != 1 {
		t.Errorf("sums %d and %d, %d writes, %d live reads", first.sum, second.sum, s.writes, s.reads)
	}
}

// TestConflictsEnd: a batch is decided again until the contexts of its requests end.
func TestConflictsEnd(t *testing.T) {
	s := &server{stored: counter{version: 1}, cached: counter{version: 1}}
	var settled atomic.Bool
	s.write = func() error {
		if settled.Load() {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	}
	c := groupcommit.New(s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Commit(ctx, key(), &add{n: 1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	settled.Store(true)
	if err := c.Commit(t.Context(), key(), &add{n: 1}); err != nil || s.stored.sum != 1 {
		t.Errorf("%v, sum %d", err, s.stored.sum)
	}
}

// TestGone: requests of an object that was deleted end with ErrGone, wherever that shows.
func TestGone(t *testing.T) {
	s := &server{stored: counter{version: 1}, cached: counter{version: 1}}
	s.write = func() error { return apierrors.NewNotFound(schema.GroupResource{}, "a") }
	c := groupcommit.New(s)
	if err := c.Commit(t.Context(), key(), &add{n: 1}); !errors.Is(err, groupcommit.ErrGone) {
		t.Errorf("at the write: %v", err)
	}
	s.mu.Lock()
	s.deleted = true
	s.mu.Unlock()
	if err := c.Commit(t.Context(), key(), &add{n: 1}); !errors.Is(err, groupcommit.ErrGone) {
		t.Errorf("in the cache: %v", err)
	}
}

// TestFailures: an error of a decision and a panic end the batch, and a request whose context has ended is left out.
func TestFailures(t *testing.T) {
	s := &server{stored: counter{version: 1}, cached: counter{version: 1}}
	c := groupcommit.New(s)
	s.decide = func() error { return apierrors.NewNotFound(schema.GroupResource{}, "target") }
	if err := c.Commit(t.Context(), key(), &add{n: 1}); !apierrors.IsNotFound(err) {
		t.Errorf("an error of the decision: %v", err)
	}
	s.decide = func() error { panic("no") }
	if err := c.Commit(t.Context(), key(), &add{n: 1}); err == nil || !strings.Contains(err.Error(), "panic: no") {
		t.Errorf("a panic: %v", err)
	}
	s.decide = nil
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Commit(ended, key(), &add{n: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if s.writes != 0 {
		t.Errorf("%d writes", s.writes)
	}
}

// TestQueues: after a conflict the queue of an object stays for a moment, so that the next requests share a write. It
// takes no memory then.
func TestQueues(t *testing.T) {
	s := &server{}
	c := groupcommit.New(s)
	s.write = func() error { // another writer is faster
		s.write = nil
		return apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	}
	if err := c.Commit(t.Context(), key(), &add{n: 1}); err != nil {
		t.Error(err)
	}
	if n := groupcommit.Queues(c); n != 1 {
		t.Errorf("%d queues after a conflict", n)
	}
	eventually(t, func() bool { return groupcommit.Queues(c) == 0 })
}

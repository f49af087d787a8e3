package groupcommit_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
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

func (*server) Version(c counter) string { return strconv.Itoa(c.version) }

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

func (s *server) Write(_ context.Context, from, after counter) (counter, error) {
	if s.write != nil {
		if err := s.write(); err != nil {
			return counter{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored.version != from.version {
		return counter{}, apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	}
	s.writes++
	after.version++
	s.stored = after
	return after, nil
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

// TestBatch: requests that arrive during a write share the next one, and the memory is freed once the cache has it.
func TestBatch(t *testing.T) {
	entered, open := make(chan struct{}, 2), make(chan struct{})
	s := &server{stored: counter{version: 1}, cached: counter{version: 1}}
	s.write = func() error { entered <- struct{}{}; <-open; return nil }
	c := groupcommit.New(s, groupcommit.Options{})
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
	if c.Seen(key()); c.Kept() != 1 {
		t.Errorf("%d kept while the cache lags", c.Kept())
	}
	s.mu.Lock()
	s.cached = s.stored
	s.mu.Unlock()
	eventually(t, func() bool { c.Seen(key()); return c.Kept() == 0 })
}

// TestConflict: after a conflict a batch is decided again upon the live object, with the requests of meanwhile.
func TestConflict(t *testing.T) {
	entered, open := make(chan struct{}, 2), make(chan struct{})
	s := &server{stored: counter{version: 7, sum: 100}, cached: counter{version: 1}}
	s.write = func() error { entered <- struct{}{}; <-open; return nil }
	c := groupcommit.New(s, groupcommit.Options{})
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

// TestConflictsEnd: a batch gives up after MaxConflicts, and what cannot be written is an error.
func TestConflictsEnd(t *testing.T) {
	tries := 0
	s := &server{stored: counter{version: 1}, cached: counter{version: 1}}
	s.write = func() error { tries++; return apierrors.NewConflict(schema.GroupResource{}, "a", nil) }
	c := groupcommit.New(s, groupcommit.Options{
		MaxConflicts: 3, Backoff: func(int) time.Duration { return time.Microsecond },
	})
	if err := c.Commit(t.Context(), key(), &add{n: 1}); !apierrors.IsConflict(err) || tries != 4 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// TestGone: requests of an object that was deleted end with ErrGone, wherever that shows.
func TestGone(t *testing.T) {
	s := &server{stored: counter{version: 1}, cached: counter{version: 1}}
	s.write = func() error { return apierrors.NewNotFound(schema.GroupResource{}, "a") }
	c := groupcommit.New(s, groupcommit.Options{})
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
	c := groupcommit.New(s, groupcommit.Options{})
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
	eventually(t, func() bool { return c.Kept() == 0 })
	if s.writes != 0 {
		t.Errorf("%d writes", s.writes)
	}
}

func TestGather(t *testing.T) {
	const several, most = 120 * time.Millisecond, 400 * time.Millisecond
	for name, c := range map[string]struct {
		last            time.Duration
		size, conflicts int
		want            time.Duration
	}{
		"one alone":                 {size: 1},
		"several":                   {size: 2, want: several},
		"several again":             {last: several, size: 2, want: several},
		"a conflict":                {size: 1, conflicts: 1, want: several},
		"conflicts again and again": {last: most, size: 1, conflicts: 1, want: most},
		"one after several":         {last: several, size: 1, want: several / 2},
		"one after a while":         {last: 10 * time.Millisecond, size: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := groupcommit.Gather(c.last, c.size, c.conflicts); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Requests are gathered soon after a write. Later ones do not wait: those that nothing is written for would do so for
// ever.
func TestGatherEnds(t *testing.T) {
	s, now, pause := &server{}, time.Unix(1, 0), time.Hour
	var mu sync.Mutex
	c := groupcommit.New[counter, *add](s, groupcommit.Options{
		Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		},
		Gather: func(time.Duration, int, int) time.Duration { return pause },
	})
	commit := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return c.Commit(ctx, key(), &add{n: 1})
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	now = now.Add(2 * time.Second)
	mu.Unlock()
	pause = 200 * time.Millisecond // after the next write
	if err := commit(); err != nil {
		t.Errorf("two seconds after a write: %v", err)
	}
	var together sync.WaitGroup
	for range 2 {
		together.Add(1)
		go func() {
			defer together.Done()
			if err := commit(); err != nil {
				t.Error(err)
			}
		}()
	}
	together.Wait()
	if s.largest != 2 || s.writes != 3 {
		t.Errorf("right after a write: %d requests at most in %d writes, want two in the third", s.largest, s.writes)
	}
}

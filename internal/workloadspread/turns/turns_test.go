package turns_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kruisekit/kruisekit/internal/workloadspread/turns"
)

// TestGrouped: requests that arrive during a turn share the next one, and no object has two turns at once.
func TestGrouped(t *testing.T) {
	var now, served, largest atomic.Int32
	entered, open := make(chan struct{}, 100), make(chan struct{})
	w := &turns.Turns[string, int]{Serve: func(_ context.Context, _ string, turn *turns.Turn[int]) {
		if now.Add(1) != 1 {
			t.Error("two turns at once")
		}
		batch := turn.Join(nil)
		served.Add(1)
		largest.Store(max(largest.Load(), int32(len(batch))))
		entered <- struct{}{}
		<-open
		now.Add(-1)
		turns.Answer(batch, nil)
	}}
	var all sync.WaitGroup
	ask := func() {
		defer all.Done()
		if err := w.Ask(t.Context(), "a", 1); err != nil {
			t.Error(err)
		}
	}
	all.Add(1)
	go ask()
	<-entered // the first turn is under way
	var asked sync.WaitGroup
	for range 20 {
		all.Add(1)
		asked.Add(1)
		go func() { asked.Done(); ask() }()
	}
	asked.Wait()
	close(open)
	all.Wait()
	if n := served.Load(); n > 21 || n < 2 {
		t.Errorf("%d turns", n)
	}
	for w.Busy() > 0 { // the line ends a moment after its last answer
		select {
		case <-t.Context().Done():
			t.Fatal("the line does not end")
		default:
		}
	}
}

// TestJoin: a turn that goes on takes what came meanwhile.
func TestJoin(t *testing.T) {
	second := make(chan struct{})
	var sizes []int
	w := &turns.Turns[string, int]{Serve: func(_ context.Context, _ string, turn *turns.Turn[int]) {
		batch := turn.Join(nil)
		for len(batch) < 2 {
			select {
			case <-second:
			default:
				close(second)
			}
			batch = turn.Join(batch)
		}
		sizes = append(sizes, len(batch))
		turns.Answer(batch, nil)
	}}
	done := make(chan error)
	go func() { done <- w.Ask(t.Context(), "a", 1) }()
	<-second
	if err := errors.Join(w.Ask(t.Context(), "a", 2), <-done); err != nil || len(sizes) != 1 || sizes[0] != 2 {
		t.Error(err, sizes)
	}
}

// TestFailures: a panic and a forgotten request are errors, and an ended context is not waited for.
func TestFailures(t *testing.T) {
	panics := &turns.Turns[string, int]{Serve: func(context.Context, string, *turns.Turn[int]) { panic("no") }}
	if err := panics.Ask(t.Context(), "a", 1); err == nil || !strings.Contains(err.Error(), "panic: no") {
		t.Error(err)
	}
	forgets := &turns.Turns[string, int]{Serve: func(_ context.Context, _ string, turn *turns.Turn[int]) {
		turn.Join(nil)
	}}
	if err := forgets.Ask(t.Context(), "a", 1); err == nil {
		t.Error("a request without an answer succeeds")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	joins := &turns.Turns[string, int]{Serve: func(_ context.Context, _ string, turn *turns.Turn[int]) {
		if batch := turn.Join(nil); len(batch) > 0 {
			t.Error("an ended request joins")
		}
	}}
	if err := joins.Ask(ended, "a", 1); err == nil {
		t.Error("an ended request succeeds")
	}
}

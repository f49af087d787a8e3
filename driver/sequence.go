package driver

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// Step is a part of a sequence.
type Step[W Request] struct {
	// Plan returns the pass of the step once the steps before it have ended; nil for none.
	Plan func() (Pass[W], error)
	// Required means that no step follows one that failed.
	Required bool
}

// Sequence returns the pass that makes one pass after the other.
func Sequence[W Request](steps ...Step[W]) Pass[W] { return &sequence[W]{steps: steps} }

type sequence[W Request] struct {
	steps []Step[W]
	// next is the index of the step that comes next, and current the pass under way.
	next    int
	current Pass[W]
	passes  []Pass[W]
	failed  []error
	stopped bool
}

// Next returns the next requests of the step under way, or the first ones of the steps after it.
func (s *sequence[W]) Next() []W {
	for {
		if s.current != nil {
			if requests := s.current.Next(); len(requests) > 0 {
				return requests
			}
			s.stopped = s.stopped || s.steps[s.next-1].Required && s.current.Err() != nil
			s.current = nil
		}
		if s.stopped || s.next == len(s.steps) {
			return nil
		}
		s.begin()
	}
}

func (s *sequence[W]) begin() {
	step := s.steps[s.next]
	s.next++
	pass, err := step.Plan()
	if err != nil {
		s.failed = append(s.failed, err)
		s.stopped = step.Required
		return
	}
	if s.current = pass; pass != nil {
		s.passes = append(s.passes, pass)
	}
}

// Answer takes the answer to a request of the step under way.
func (s *sequence[W]) Answer(now time.Time, request W, object write.Object, err error) []W {
	return s.current.Answer(now, request, object, err)
}

// Err joins what failed in all steps.
func (s *sequence[W]) Err() error {
	failed := s.failed
	for _, pass := range s.passes {
		failed = append(failed, pass.Err())
	}
	return errors.Join(failed...)
}

// Notes returns those of all steps.
func (s *sequence[W]) Notes() []note.Note {
	var notes []note.Note
	for _, pass := range s.passes {
		notes = append(notes, pass.Notes()...)
	}
	return notes
}

// RequeueAfter returns the shortest of all steps.
func (s *sequence[W]) RequeueAfter() time.Duration {
	var shortest time.Duration
	for _, pass := range s.passes {
		if after := pass.RequeueAfter(); after > 0 && (shortest == 0 || after < shortest) {
			shortest = after
		}
	}
	return shortest
}

// Lift returns a pass of plain writes as one whose requests are of another type. wrap returns the request of a write.
func Lift[W Request](pass Pass[*write.Write], wrap func(*write.Write) W) Pass[W] {
	return &lifted[W]{Pass: pass, wrap: wrap}
}

type lifted[W Request] struct {
	Pass[*write.Write]

	wrap func(*write.Write) W
}

func (l *lifted[W]) all(writes []*write.Write) []W {
	requests := make([]W, 0, len(writes))
	for _, w := range writes {
		requests = append(requests, l.wrap(w))
	}
	return requests
}

// Next returns the next requests.
func (l *lifted[W]) Next() []W { return l.all(l.Pass.Next()) }

// Answer returns the requests that follow.
func (l *lifted[W]) Answer(now time.Time, request W, object write.Object, err error) []W {
	return l.all(l.Pass.Answer(now, request.Request(), object, err))
}

// Stage returns the pass of requests that are independent of each other. answer takes what was answered to each of
// them, and returns the requests that follow, and what failed.
func Stage[W Request](requests []W, answer func(request W, object write.Object, err error) ([]W, error)) Pass[W] {
	s := &stage[W]{requests: requests, answer: answer, places: make(map[*write.Write]int, len(requests))}
	for i, request := range requests {
		s.places[request.Request()] = i
	}
	s.failed = make([]error, len(requests))
	return s
}

type stage[W Request] struct {
	requests []W
	answer   func(W, write.Object, error) ([]W, error)
	// places are those of the requests and of what follows from them, so that errors come in the order of the requests.
	places map[*write.Write]int
	failed []error
}

// Next returns all requests at once.
func (s *stage[W]) Next() []W {
	requests := s.requests
	s.requests = nil
	return requests
}

// Answer returns what follows.
func (s *stage[W]) Answer(_ time.Time, request W, object write.Object, err error) []W {
	follows, failed := s.answer(request, object, err)
	place, known := s.places[request.Request()]
	if !known { // a copy of the write, as of a pass that is lifted
		place = len(s.failed)
		s.failed = append(s.failed, nil)
	}
	for _, f := range follows {
		s.places[f.Request()] = place
	}
	s.failed[place] = errors.Join(s.failed[place], failed)
	return follows
}

// Err joins what failed.
func (s *stage[W]) Err() error { return errors.Join(s.failed...) }

// Notes returns none.
func (*stage[W]) Notes() []note.Note { return nil }

// RequeueAfter returns 0: nothing follows.
func (*stage[W]) RequeueAfter() time.Duration { return 0 }

// Writes returns the pass of writes that are independent of each other, and that nothing follows, as the deletion of
// what is not needed any more. A write that was decided upon an older object has not failed.
func Writes(writes ...*write.Write) Pass[*write.Write] {
	return Stage(writes, func(w *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		exists := w.Verb == write.Create && apierrors.IsAlreadyExists(err)
		if err != nil && (exists || !write.IsOutdated(err)) {
			return nil, fmt.Errorf("%s: %w", w, err)
		}
		return nil, nil
	})
}

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

// Writes returns the pass of writes that are independent of each other, and that nothing follows, as the deletion of what
// is not needed any more. A write that was decided upon an older object has not failed.
func Writes(writes ...*write.Write) Pass[*write.Write] { return &independent{writes: writes} }

type independent struct {
	writes []*write.Write
	failed []error
}

// Next returns all writes at once.
func (p *independent) Next() []*write.Write {
	writes := p.writes
	p.writes = nil
	return writes
}

// Answer keeps what failed.
func (p *independent) Answer(_ time.Time, w *write.Write, _ write.Object, err error) []*write.Write {
	exists := w.Verb == write.Create && apierrors.IsAlreadyExists(err)
	if err != nil && (exists || !write.IsOutdated(err)) {
		p.failed = append(p.failed, fmt.Errorf("%s: %w", w, err))
	}
	return nil
}

// Err joins what failed.
func (p *independent) Err() error { return errors.Join(p.failed...) }

// Notes returns none.
func (*independent) Notes() []note.Note { return nil }

// RequeueAfter returns 0: nothing follows.
func (*independent) RequeueAfter() time.Duration { return 0 }

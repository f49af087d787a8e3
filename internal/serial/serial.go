// Package serial makes passes of writes that follow each other: an error leaves the rest to the next pass.
//
//	pass := serial.Pass(
//		serial.Step{Doing: "create request", Plan: p.create},
//		serial.Step{Doing: "write status", Plan: p.writeStatus},
//	)
//	err := r.api.Run(ctx, owner, pass, r.requests.Writes)
//	if write.IsOutdated(err) { // plan again, soon
//
// A step is planned once the steps before it are answered. When not to use it: for writes that are independent of each
// other, which driver.Writes sends in parallel.
package serial

import (
	"errors"
	"fmt"
	"time"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// Step is one write, or a question.
type Step struct {
	// Doing names the step in errors.
	Doing string
	// Plan returns the write; nil for none.
	Plan func() (*write.Write, error)
	// Answered takes the answer, and returns what fails the step, or ErrStop. Nil fails it with the error of the write.
	Answered func(answer write.Object, err error) error
}

// ErrStop ends a pass that has not failed.
var ErrStop = errors.New("nothing is left to do")

// Writes is a pass of writes that follow each other.
type Writes struct {
	steps []Step
	sent  Step
	err   error
}

// Pass returns the pass of some steps.
func Pass(steps ...Step) *Writes { return &Writes{steps: steps} }

// Next returns the next write.
func (s *Writes) Next() []*write.Write {
	for len(s.steps) > 0 {
		s.sent, s.steps = s.steps[0], s.steps[1:]
		w, err := s.sent.Plan()
		if err != nil {
			s.end(err)
			return nil
		}
		if w != nil {
			return []*write.Write{w}
		}
	}
	return nil
}

// Answer takes what was answered to a write.
func (s *Writes) Answer(_ time.Time, _ *write.Write, answer write.Object, err error) []*write.Write {
	if s.sent.Answered != nil {
		err = s.sent.Answered(answer, err)
	}
	if err != nil {
		s.end(err)
	}
	return nil
}

func (s *Writes) end(err error) {
	s.steps = nil
	if !errors.Is(err, ErrStop) {
		s.err = fmt.Errorf("%s: %w", s.sent.Doing, err)
	}
}

// Err returns what ended the pass, also where the write was decided upon an older object.
func (s *Writes) Err() error { return s.err }

// Notes returns none.
func (*Writes) Notes() []note.Note { return nil }

// RequeueAfter returns 0.
func (*Writes) RequeueAfter() time.Duration { return 0 }

package resourcedistribution

import (
	"time"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// plan is what one pass of a distribution is to do. All of it follows from the snapshot, and from the answers.
type plan struct {
	*snapshot

	copies *copying
}

func newPlan(s *snapshot) *plan {
	return &plan{
		snapshot: s, copies: &copying{of: distribution.Plan(s.input), steps: map[*write.Write]*distribution.Step{}},
	}
}

// needsObject reports whether the pass does harm where the cache shows an older distribution: the admin may have added
// the namespace of a copy to the targets since.
func (p *plan) needsObject() bool { return p.copies.of.Deletes() }

// pass is all that is written: the copies, and then the status, also where requests failed.
func (p *plan) pass() pass {
	return driver.Sequence(
		step{Plan: func() (pass, error) { return p.copies, nil }},
		step{Plan: p.report},
	)
}

// copying is the pass over the copies: the steps that package distribution plans. The steps of one namespace follow
// each other, and those of several namespaces are independent.
type copying struct {
	of    *distribution.Pass
	begun bool
	// steps are those under way.
	steps map[*write.Write]*distribution.Step
}

// Next returns the first request of each namespace.
func (c *copying) Next() []*write.Write {
	if c.begun {
		return nil
	}
	c.begun = true
	var writes []*write.Write
	for i := range c.of.Steps {
		writes = append(writes, c.request(&c.of.Steps[i]))
	}
	return writes
}

func (c *copying) request(s *distribution.Step) *write.Write {
	w := c.of.Request(*s)
	c.steps[w] = s
	return w
}

// Answer takes the answer to a request, and returns the next one of the namespace.
func (c *copying) Answer(_ time.Time, w *write.Write, answer write.Object, err error) []*write.Write {
	s := c.steps[w]
	delete(c.steps, w)
	if *s = c.of.Answer(*s, answer, err); s.Ended() {
		return nil
	}
	return []*write.Write{c.request(s)}
}

// Err joins what another try may mend.
func (c *copying) Err() error { return c.of.Err() }

// Notes returns conflicts, and namespaces that are missing.
func (c *copying) Notes() []note.Note { return c.of.Notes }

// RequeueAfter returns when a copy may be restored that another writer changes again and again.
func (c *copying) RequeueAfter() time.Duration { return c.of.RequeueAfter }

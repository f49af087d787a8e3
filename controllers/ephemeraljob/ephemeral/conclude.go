package ephemeral

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// soon is when to look again at a pod that is not as the plan has seen it.
	soon = time.Second
	// atOnce is when to try the pods that a pass with many refusals has left.
	atOnce = time.Millisecond
	// FirstRetry is how long a pod that has refused once is left alone. The time doubles with each attempt.
	FirstRetry = 5 * time.Second
	// LastRetry is the longest of these times.
	LastRetry = 5 * time.Minute
)

// Outcome is what follows from the answers.
type Outcome struct {
	// Status of the job.
	Status v1alpha1.EphemeralJobStatus
	// Turn is what Status changes in the life of the job, for an event once it is written; nil for nothing.
	Turn *note.Note
	// Refused are the pods that have refused, for the next pass.
	Refused map[types.UID]Refusal
	// NewlyRefused are the pods that have refused for the first time, with the answers, by name.
	NewlyRefused []note.Note
}

// Next returns the writes of the pods that get the containers next, in this order. A write without an answer is not
// made again in the same pass.
func (p *Pass) Next() []*write.Write {
	if len(p.failures) > 0 {
		return nil
	}
	n := min(p.free, len(p.due), max(MaxRefusals-p.refusals, 0))
	pods := p.due[:n]
	p.due = p.due[n:]
	p.free -= n
	writes := make([]*write.Write, 0, n)
	for _, pod := range pods {
		writes = append(writes, Write(p.in.Job, pod))
	}
	return writes
}

// Answer takes an answer. The slot of a pod that refuses goes to the next one.
func (p *Pass) Answer(_ time.Time, w *write.Write, _ write.Object, err error) []*write.Write {
	name, uid := w.Object.GetName(), w.Object.GetUID()
	switch {
	case err == nil:
		p.added++
		delete(p.refused, uid)
	case write.IsOutdated(err):
		p.requeueAfter = requeue.Sooner(p.requeueAfter, soon)
	case write.IsRefused(err):
		p.free++
		p.refusals++
		refusal := next(p.refused[uid], err, p.in.Now)
		p.refused[uid] = refusal
		p.requeueAfter = requeue.Sooner(p.requeueAfter, refusal.RetryAt.Sub(p.in.Now))
		if refusal.Attempts == 1 {
			p.newlyRefused = append(p.newlyRefused, blocked(NoteRefused, name, refusal.Text))
		}
	default:
		p.failures = append(p.failures, fmt.Errorf("add containers to pod %s: %w", name, err))
	}
	return nil
}

// Err joins the errors that concern more than a pod: the API server is overloaded or did not answer.
func (p *Pass) Err() error { return errors.Join(p.failures...) }

// Notes returns why the pass is as it is.
func (p *Pass) Notes() []note.Note { return p.notes }

// RequeueAfter returns when to look again though nothing changes; zero for never.
func (p *Pass) RequeueAfter() time.Duration {
	if p.open && p.refusals >= MaxRefusals && p.free > 0 && len(p.due) > 0 {
		return requeue.Sooner(p.requeueAfter, atOnce)
	}
	return p.requeueAfter
}

// Conclude returns what follows from the answers.
func (p *Pass) Conclude() Outcome {
	o := Outcome{Status: *p.status.DeepCopy(), Turn: p.turn, Refused: p.refused, NewlyRefused: p.newlyRefused}
	slices.SortFunc(o.NewlyRefused, func(a, b note.Note) int { return cmp.Compare(a.Object, b.Object) })
	s := &o.Status
	switch {
	case p.invalid != nil:
		s.Phase = v1alpha1.EphemeralJobError
		p.set(s, v1alpha1.EJobError, v1alpha1.EJobReasonError, brief(p.invalid.Error()))
	case p.open:
		s.Waiting += int32(p.added)
		s.Phase = p.phase(s)
		p.condition(s)
	}
	return o
}

// next returns the refusal after another attempt.
func next(r Refusal, err error, now time.Time) Refusal {
	wait := FirstRetry
	for range min(r.Attempts, 10) {
		wait = min(2*wait, LastRetry)
	}
	return Refusal{Text: brief(err.Error()), Attempts: r.Attempts + 1, RetryAt: now.Add(wait)}
}

// condition sets the conditions of a job that goes on.
func (p *Pass) condition(s *v1alpha1.EphemeralJobStatus) {
	unset(s, v1alpha1.EJobError)
	if s.Matches == 0 {
		p.set(s, v1alpha1.EJobMatchedEmpty, v1alpha1.EJobReasonMatchEmpty, p.whyEmpty)
	} else {
		unset(s, v1alpha1.EJobMatchedEmpty)
	}
	switch refused := p.refusing(); {
	case s.Failed > 0:
		p.set(s, v1alpha1.EJobFailed, v1alpha1.EJobReasonJobFailed, "The containers failed in "+some(p.namesOf(Failed)))
	case len(refused) > 0:
		text := fmt.Sprintf("The API server refuses the containers for %d pods, as for %s", len(refused), refused[0])
		p.set(s, v1alpha1.EJobFailed, v1alpha1.EJobReasonCreateFailed, text)
	default:
		unset(s, v1alpha1.EJobFailed)
	}
}

// refusing returns the names and the last answers of the targets that refuse, sorted.
func (p *Pass) refusing() []string {
	var texts []string
	for _, target := range p.Targets {
		if refusal, is := p.refused[target.Pod.UID]; is {
			texts = append(texts, target.Pod.Name+": "+refusal.Text)
		}
	}
	slices.Sort(texts)
	return texts
}

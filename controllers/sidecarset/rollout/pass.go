package rollout

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// RefusalPause is how long other pods take the turn of a pod whose update was refused.
	RefusalPause = 10 * time.Second
	// RetryOutdated is when to observe again after a change that was decided upon an older pod.
	RetryOutdated = time.Second
	// retryRefused is when other pods take the turn of a pod whose update was refused.
	retryRefused = 100 * time.Millisecond
	// maxFailureText bounds the text about failures.
	maxFailureText = 1000
)

// Pass is one pass over the pods of a set: the changes in their order, and what follows from their answers. It is not
// safe for concurrent use.
type Pass struct {
	in     Input
	result Result
	stages [][]*Change

	// after is when to plan again although nothing changes.
	after           time.Duration
	blocked         int
	refused, failed []error
}

// Plan begins a pass. Also with an error there is a pass, which contains everything that the error does not concern:
// a *SpecError is of a part of the spec, other errors are of pods that cannot be read or changed.
func Plan(in Input) (*Pass, error) {
	held := map[types.UID]time.Time{}
	maps.Copy(held, in.Held)
	maps.DeleteFunc(held, func(_ types.UID, until time.Time) bool { return !until.After(in.Now) })
	in.Held = held
	p := &Pass{in: in}
	var err error
	p.result, err = plan(&p.in)
	p.stages, p.after = [][]*Change{p.result.Marks, p.result.Resets, p.result.Updates}, p.result.RequeueAfter
	return p, err
}

// Result returns the plan.
func (p *Pass) Result() Result { return p.result }

// Next returns the next changes, and nil at the end of the pass. They are independent of each other, so send them in
// any order or at the same time, and give each answer to Answer, from one goroutine at a time. A change that was
// not sent needs no answer.
func (p *Pass) Next() []*Change {
	for len(p.stages) > 0 {
		changes := p.stages[0]
		if p.stages = p.stages[1:]; len(changes) > 0 {
			return changes
		}
	}
	return nil
}

// Answer takes the answer of the API server to a change: the pod as it is now, or the error. It returns the change that
// follows. A pod that has changed since the plan is left to the next pass.
func (p *Pass) Answer(_ time.Time, c *Change, object write.Object, err error) []*Change {
	switch {
	case err == nil:
		pod, _ := object.(*corev1.Pod)
		return p.follow(c, pod)
	case apierrors.IsNotFound(err): // the deletion is an event
		return nil
	case write.IsOutdated(err):
		p.after = passes.Sooner(p.after, RetryOutdated)
		return nil
	}
	mayBeRefused := write.IsRefused(err) || apierrors.IsInternalError(err) // which answers for a webhook that fails
	if c.Action == ActionUpdate && mayBeRefused {
		p.in.Held[c.Pod.UID] = p.in.Now.Add(RefusalPause)
		p.after = passes.Sooner(p.after, retryRefused)
	}
	failure := fmt.Errorf("%s: %w", c, err)
	if p.failed = append(p.failed, failure); write.IsRefused(err) {
		p.refused = append(p.refused, failure)
	}
	return nil
}

// follow returns the condition that an update calls for.
func (p *Pass) follow(c *Change, pod *corev1.Pod) []*Change {
	if c.Blocks {
		p.blocked++
	}
	if c.Action != ActionUpdate {
		return nil
	}
	if mark := p.in.mark(pod, true); mark != nil {
		return []*Change{mark}
	}
	return nil
}

// Notes returns the reasons why pods wait, and which fields of the spec are ignored.
func (p *Pass) Notes() []note.Note { return p.result.Notes }

// RequeueAfter returns when to plan again although nothing changes; zero for never.
func (p *Pass) RequeueAfter() time.Duration { return p.after }

// Held returns the pods whose update was refused, for Input.Held of the next pass.
func (p *Pass) Held() map[types.UID]time.Time { return maps.Clone(p.in.Held) }

// Blocked returns the number of pods of which this pass reported for the first time that the set cannot update them.
func (p *Pass) Blocked() int { return p.blocked }

// Err returns the failed changes. An outdated change is no failure.
func (p *Pass) Err() error { return errors.Join(p.failed...) }

// Failures returns the text about pods that cannot be read and changes that were refused; empty if there are none. The
// text is the same as long as these are.
func (p *Pass) Failures() string {
	var all []string
	for _, n := range p.result.Notes {
		if n.Code == NoteUnreadable {
			all = append(all, "pod "+n.Message())
		}
	}
	for _, err := range p.refused {
		all = append(all, err.Error())
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	text := strings.ToValidUTF8(all[0][:min(len(all[0]), maxFailureText)], "")
	if len(all) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(all)-1)
	}
	return text
}

// isHeld notes why a pod may not be updated now, and when that ends.
func (p *planner) isHeld(m *member) bool {
	rest := p.in.Held[m.pod.UID].Sub(p.in.Now)
	if rest <= 0 {
		return false
	}
	p.note(NoteRefused, m, "its update was refused a moment ago")
	p.result.RequeueAfter = passes.Sooner(p.result.RequeueAfter, rest)
	return true
}

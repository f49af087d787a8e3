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

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// RefusalPause is how long other pods take the turn of a pod whose update was refused.
	RefusalPause = 10 * time.Second
	// RetryOutdated is when to observe again after a change that was decided upon an older pod.
	RetryOutdated = time.Second
	// hookPause is when to call Input.May again for a pod.
	hookPause = time.Second
	// maxPlans bounds the plans of a pass: a refused update gives its turn to another pod.
	maxPlans = 3
	// retryRefused is when to continue after the last of them.
	retryRefused = 100 * time.Millisecond
	// maxFailureText bounds the text about failures.
	maxFailureText = 1000
)

// Pass is one pass over the pods of a set: the changes in their order, and what follows from their answers. It is not
// safe for concurrent use.
type Pass struct {
	in     Input
	result Result
	plans  int
	stages [][]*Change

	// answered are the pods as the API server returned them, by UID.
	answered map[types.UID]*corev1.Pod
	// room reports that a refused update gives its turn to another pod, changed that a pod is another than the plan saw:
	// both call for another plan. outdated reports that a pod is to be observed again.
	room, changed, outdated bool
	blocked                 int
	refused, failed         []error

	// asked counts the questions, and learned reports that an answer calls for the plan to be made again.
	asked   int
	learned bool
	// released is the set whose deletion the pass is about; empty for none.
	released string
}

// Plan begins a pass. Also with an error there is a pass, which contains everything that the error does not concern:
// a *SpecError is of a part of the spec, other errors are of pods that cannot be read or changed.
func Plan(in Input) (*Pass, error) {
	p := &Pass{in: in, answered: map[types.UID]*corev1.Pod{}}
	p.in.Pods = slices.Clone(in.Pods)
	p.in.Held, p.in.Gone, p.in.unknown = map[types.UID]time.Time{}, maps.Clone(in.Gone), map[string]bool{}
	for uid, until := range in.Held {
		if until.After(in.Now) {
			p.in.Held[uid] = until
		}
	}
	return p, p.plan()
}

func (p *Pass) plan() (err error) {
	p.plans++
	p.room, p.changed = false, false
	p.in.Pods = p.pods()
	p.result, err = plan(&p.in)
	p.stages = [][]*Change{p.result.Marks, p.result.Resets, p.result.Updates}
	return err
}

// pods returns the pods as the last answers left them.
func (p *Pass) pods() []*corev1.Pod {
	pods := slices.Clone(p.in.Pods)
	for i, pod := range pods {
		if answered := p.answered[pod.UID]; answered != nil {
			pods[i] = answered
		}
	}
	return pods
}

// Result returns the last plan.
func (p *Pass) Result() Result { return p.result }

// Next returns the next changes, or questions, and nil at the end of the pass. They are independent of each other, so
// send them in any order or at the same time, and give each answer to Answer, from one goroutine at a time. A change
// that was not sent needs no answer.
func (p *Pass) Next() []*Change {
	for {
		if questions := p.questions(); len(questions) > 0 {
			return questions
		}
		p.consider()
		for len(p.stages) > 0 {
			changes := p.stages[0]
			if p.stages = p.stages[1:]; len(changes) > 0 {
				return changes
			}
		}
		if !p.room && !p.changed || p.plans == maxPlans {
			return nil
		}
		_ = p.plan() // the first plan returned the same error
	}
}

// consider follows from the answers to the questions: a plan that removes the records of sets that are gone, or no
// change at all where a set is not gone after all.
func (p *Pass) consider() {
	switch {
	case p.released != "" && !p.in.Gone[p.released]:
		p.stages = nil
	case p.released == "" && p.learned:
		p.plans-- // it is the same plan
		_ = p.plan()
	}
	p.learned = false
}

// Answer takes the answer of the API server to a change: the pod as it is now, or the error. It returns the change that
// follows.
//
// A pod that is no longer what an update was decided upon is read from the API server, and the pass plans again with
// that pod.
func (p *Pass) Answer(_ time.Time, c *Change, object write.Object, err error) []*Change {
	if c.Action == ActionAsk {
		p.learn(c.Object.GetName(), err)
		return nil
	}
	pod, _ := object.(*corev1.Pod)
	same := pod != nil && pod.UID == c.Pod.UID // else the pod is deleted, and another one has its name
	if same && p.answered != nil {
		p.answered[pod.UID] = pod
	}
	switch {
	case c.Action == ActionRead:
		p.changed = p.changed || same
		p.outdated = p.outdated || pod == nil
		return nil
	case err == nil:
		return p.follow(c, pod)
	case write.IsOutdated(err):
		return p.reread(c, err)
	}
	mayBeRefused := write.IsRefused(err) || apierrors.IsInternalError(err) // which answers for a webhook that fails
	if c.Action == ActionUpdate && mayBeRefused {
		p.in.Held[c.Pod.UID] = p.in.Now.Add(RefusalPause)
		p.room = true
	}
	failure := fmt.Errorf("%s: %w", c, err)
	if p.failed = append(p.failed, failure); write.IsRefused(err) {
		p.refused = append(p.refused, failure)
	}
	return nil
}

// reread returns the question about a pod that is no longer what a change was decided upon.
func (p *Pass) reread(c *Change, err error) []*Change {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case c.Action == ActionMark:
		p.outdated = true
		return nil
	}
	return []*Change{{Write: write.Write{Verb: write.Get, Object: c.Pod}, Action: ActionRead, Pod: c.Pod}}
}

// follow returns the condition that an update calls for.
func (p *Pass) follow(c *Change, pod *corev1.Pod) []*Change {
	if c.Blocks {
		p.blocked++
	}
	if c.Action != ActionUpdate {
		return nil
	}
	mark, err := p.in.mark(pod, true)
	switch {
	case err != nil:
		p.failed = append(p.failed, fmt.Errorf("%s: %w", c, err))
		return nil
	case mark == nil:
		return nil
	}
	return []*Change{mark}
}

// Status returns the status of the set as the answered changes left its pods.
func (p *Pass) Status() appsv1beta1.SidecarSetStatus {
	if len(p.answered) == 0 {
		return p.result.Status
	}
	in := p.in
	in.Pods = p.pods()
	return count(&in)
}

// Notes returns the reasons why pods wait, and what of the spec is ignored.
func (p *Pass) Notes() []note.Note { return p.result.Notes }

// RequeueAfter returns when to plan again although nothing changes; zero for never.
func (p *Pass) RequeueAfter() time.Duration {
	after := p.result.RequeueAfter
	if p.outdated || p.changed {
		after = requeue.Sooner(after, RetryOutdated)
	}
	if p.room {
		after = requeue.Sooner(after, retryRefused)
	}
	return after
}

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
	if rest := p.in.Held[m.pod.UID].Sub(p.in.Now); rest > 0 {
		p.note(NoteRefused, m, "its update was refused a moment ago")
		p.requeueAfter(rest)
		return true
	}
	if p.in.May == nil {
		return false
	}
	ok, why := p.in.May(m.pod)
	if !ok {
		p.note(NoteRefused, m, "%s", why)
		p.requeueAfter(hookPause)
	}
	return !ok
}

func (p *planner) requeueAfter(d time.Duration) {
	p.result.RequeueAfter = requeue.Sooner(p.result.RequeueAfter, d)
}

package workload

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// ErrUnobserved is the answer to the creation of a pod that exists and is of the workload, as one whose deletion a
// cache does not show yet. The pass is to be made again, and nothing has failed.
var ErrUnobserved = errors.New("the pod exists, and was not observed")

// Answer takes what the API server answered to a write: the object as it is now, or the error. It returns the writes
// that follow from the answer. A nil pod is no object. The writes are dated from now, the time of the answer: a grace
// period begins when the pod has left traffic, however long the writes before it took.
func (p *Pass) Answer(now time.Time, w *Write, object write.Object, err error) []*Write {
	if now.After(p.now) {
		p.now = now
	}
	switch w.Action {
	case ActionAsk:
		p.asked(w, err)
		return nil
	case ActionStore:
		return p.stored(p.in.Store.Answer(now, w.Request(), object, err))
	case ActionTrim:
		if err != nil && !write.IsOutdated(err) {
			p.fail(Failure{Write: w, Object: w.Object.GetName(), Err: fmt.Errorf("%s: %w", w, err)})
		}
		return nil
	case ActionObserve:
		return p.answered(w.creation(), object, w.taken(object, err))
	}
	return p.answered(w, object, err)
}

// answered takes the answer to a write of the pods, or of what they need.
func (p *Pass) answered(w *Write, object write.Object, err error) []*Write {
	if w.member != nil {
		w.member.busy = 0
	}
	if w.Action == ActionDelete && apierrors.IsNotFound(err) {
		err = nil
	}
	switch {
	case w.Verb == write.Evict && apierrors.IsTooManyRequests(err):
		p.notEvicted(w, err)
		return nil
	case err == nil:
		return p.succeeded(w, object)
	case w.asksForName(err):
		question := *w
		question.Verb, question.Action, question.refused = write.Get, ActionObserve, err
		return []*Write{&question}
	case w.isOutdated(err):
		p.wake(p.in.Repeats.outdatedPause())
		p.outdated = true
		if w.of != nil {
			w.of.over = p.stage
		}
		return nil
	}
	p.fail(Failure{Write: w, Object: w.Object.GetName(), Err: fmt.Errorf("%s: %w", w, err)})
	if w.of != nil {
		w.of.over = p.stage
		w.of.skip = w.of.skip || p.stage >= stageContinue
	}
	if !write.IsRefused(err) { // the outcome is unknown
		p.broken, p.uncertain = true, p.uncertain || w.Action == ActionDelete
	}
	return nil
}

// notEvicted ends the updates that begin in the pass: a budget has no room for the pod. Their order is kept.
func (p *Pass) notEvicted(w *Write, err error) {
	after := retryEviction
	if seconds, suggests := apierrors.SuggestsClientDelay(err); suggests {
		after = max(after, time.Duration(seconds)*time.Second)
	}
	p.note(note.Waiting, NoteNotEvicted, w.Pod.Name, err.Error())
	p.wake(after)
	p.replans = maxReplans
	if w.of != nil {
		w.of.over = p.stage
	}
}

// isOutdated reports whether a write was decided upon an older object. What a pod needs may exist and was not observed:
// it may be terminating or another owner's, so that the pod would never start.
func (w *Write) isOutdated(err error) bool {
	return w.Verb != write.Create && write.IsOutdated(err) || errors.Is(err, ErrUnobserved) ||
		apierrors.IsAlreadyExists(err) && len(w.rest) > 0
}

// asksForName reports whether the creation of a pod of an owner failed because a pod has its name. That pod may be the
// owner's: a cache shows an earlier state, as of a pod that was deleted a moment ago.
func (w *Write) asksForName(err error) bool {
	return w.Verb == write.Create && w.refused == nil && len(w.rest) == 0 && w.Pod != nil &&
		w.Object == write.Object(w.Pod) && apierrors.IsAlreadyExists(err) && metav1.GetControllerOfNoCopy(w.Pod) != nil
}

// taken returns the answer to a creation once the API server has shown the pod of its name. A pod that is gone by now
// was the owner's, too.
func (w *Write) taken(there write.Object, err error) error {
	owner := &metav1.ObjectMeta{UID: metav1.GetControllerOfNoCopy(w.Pod).UID}
	if apierrors.IsNotFound(err) || err == nil && there != nil && metav1.IsControlledBy(there, owner) {
		return fmt.Errorf("%w: %w", ErrUnobserved, w.refused)
	}
	return w.refused
}

// creation returns the creation that a question is about.
func (w *Write) creation() *Write {
	creation := *w
	creation.Verb, creation.Action = write.Create, ActionCreate
	return &creation
}

// IsOutdated reports whether a write was decided upon an older object, so that the pass is to be made again.
func (p *Pass) IsOutdated() bool { return p.outdated }

func (p *Pass) succeeded(w *Write, object write.Object) []*Write {
	if p.stage >= stageComplete && p.stage <= stageFree && len(w.rest) == 0 {
		p.scaled = true
	}
	switch w.Action {
	case ActionFirst:
		return nil
	case ActionPrepare:
		w.member.prepared++
		object = nil // it is not the pod
	case ActionAhead:
		w.member.ahead++
		object = nil
	case ActionCreate:
		return w.createRest()
	case ActionDelete:
		w.member.deleted = true
		return nil
	case ActionMove, ActionLabel:
		p.moved = true
	}
	p.observeAnswer(w, object)
	p.repeats.made(w, p.now)
	return p.follow(w.of)
}

// observeAnswer has the pass go on with an object as the API server has answered it.
func (p *Pass) observeAnswer(w *Write, object write.Object) {
	switch pod, ok := object.(*corev1.Pod); {
	case object == nil:
	case w.member.child != nil:
		w.member.child, w.member.pod = object, p.in.Children.stand(&p.in, object)
	case ok && pod != nil:
		w.member.pod = pod
	}
}

// createRest creates the next object of a creation.
func (w *Write) createRest() []*Write {
	if len(w.rest) == 0 {
		return nil
	}
	next := *w
	next.Object, next.rest = w.rest[0], w.rest[1:]
	return []*Write{&next}
}

func (p *Pass) fail(f Failure) {
	f.Scaling = p.stage <= stageFree
	p.failures = append(p.failures, f)
}

// Err joins what failed; nil for nothing. It lists at most MaxErrors failures of objects.
func (p *Pass) Err() error {
	if p.in.Store == nil {
		return Err(p.failures)
	}
	return errors.Join(p.in.Store.Err(), Err(p.failures)) // without the update revision nothing follows
}

// failed reports whether anything failed before updates.
func (p *Pass) failed() bool { return len(p.failures) > 0 }

// wake asks for another pass after a time.
func (p *Pass) wake(after time.Duration) {
	if after > 0 && (p.after == 0 || after < p.after) {
		p.after = after
	}
}

// RefusedError is the answer to a question that admits some of its pods, or none.
type RefusedError struct {
	// Admitted counts the pods, from the first one on, that may be disrupted.
	Admitted int
	// Reason is why the next pod may not. It becomes the text of a note.
	Reason string
}

// Error returns the reason.
func (r *RefusedError) Error() string { return r.Reason }

// ask returns the question about the updates that begin next; nil where there are none to ask for.
func (p *Pass) ask() []*Write {
	if !p.in.Ask || p.scaled || p.moved || p.uncertain {
		return nil
	}
	q := &Write{Action: ActionAsk, Revision: p.in.Update.Name}
	for k := range p.result.Update {
		i := p.find(p.result.Update[k].Name)
		if p.isOver(i) || i.allowed || !p.disrupts(i) {
			continue
		}
		if !p.may(i) {
			break
		}
		for _, m := range i.members {
			q.Asked = append(q.Asked, m.pod)
		}
		q.asked = append(q.asked, i)
	}
	if len(q.Asked) == 0 {
		return nil
	}
	q.Write, q.Pod = write.Write{Verb: write.Ask, Object: q.Asked[0]}, q.Asked[0]
	return []*Write{q}
}

// may reports whether Input.MayUpdate allows the update of an instance. A refusal ends the updates that begin in the
// pass.
func (p *Pass) may(i *instance) bool {
	if p.in.MayUpdate == nil {
		return true
	}
	ok, why := p.in.MayUpdate(i.leader().pod)
	if !ok {
		p.refused(i, why)
	}
	return ok
}

// refused ends the updates that begin in the pass. Their order is kept: those after the instance wait with it.
func (p *Pass) refused(i *instance, why string) {
	p.note(note.Waiting, NoteRefused, i.Name, why)
	p.wake(retryRefused)
	p.replans = maxReplans
}

// asked takes the answer to a question.
func (p *Pass) asked(w *Write, err error) {
	admitted := len(w.Asked)
	var refusal *RefusedError
	switch {
	case errors.As(err, &refusal):
		admitted = refusal.Admitted
	case err != nil:
		p.fail(Failure{Write: w, Object: w.Object.GetName(), Err: fmt.Errorf("%s: %w", w, err)})
		p.replans = maxReplans
		return
	}
	for _, i := range w.asked {
		// The pods of a group change together: one that is refused refuses all.
		if admitted -= len(i.members); admitted < 0 {
			p.refused(i, refusal.Reason)
			return
		}
		i.allowed = true
	}
}

package workload

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/write"
)

// Pass is one pass over the pods of a workload. It is not safe for concurrent use.
type Pass struct {
	in        Input
	instances []*instance
	byName    map[string]*instance
	pods      []*corev1.Pod
	changes   changes
	labels    map[string]map[string]string
	result    scale.Result

	stage stage
	// replans counts the plans made because instances of the one before were rejected.
	replans int
	// broken means that a write failed whose outcome is unknown, or that others would fail too; outdated that one was decided
	// upon an older object.
	broken, outdated bool
	// scaled and moved mean that the number or the state of pods has changed, which the next pass observes first.
	scaled, moved bool
	// creations are those of the current plan, and built what Build returned for them.
	creations []Creation

	failures []Failure
	notes    []note.Note
	after    time.Duration
}

// stage is a part of a pass. All writes of a stage are independent of each other.
type stage int

const (
	// stageFirst sends the writes of the caller, and deletes pods that have finished. The zero stage comes before it.
	stageFirst stage = iota + 1
	// stageComplete creates what groups lack, and deletes what is left of groups without a leader.
	stageComplete
	// stageScale restores, creates or deletes instances.
	stageScale
	// stageContinue continues updates that have begun, and moves states.
	stageContinue
	// stageUpdate begins updates.
	stageUpdate
	stageEnd
)

const (
	// maxReplans bounds the plans of a pass.
	maxReplans = 3
	// maxWritesPerPod bounds the writes of a pod in one pass: a writer that reverts each of them must not keep a pass going.
	maxWritesPerPod = 12
	// retryOutdated is when to observe again after a write that was decided upon an older object.
	retryOutdated = time.Second
	// retryRefused is when to ask again for an update that MayUpdate refused.
	retryRefused = time.Second
	// retryReverted is when to look again at a pod whose writes are reverted.
	retryReverted = time.Minute
)

// Plan begins a pass. The error is one of scale.Plan.
func Plan(in Input) (*Pass, error) {
	p := &Pass{in: in}
	p.changes.in = &p.in
	p.observe()
	if err := p.plan(false); err != nil {
		return nil, err
	}
	return p, nil
}

// plan makes a plan of the numbers, of the instances as they are now.
func (p *Pass) plan(updateOnly bool) error {
	in := p.in.Scale
	in.UpdateOnly = updateOnly || in.UpdateOnly
	in.Instances = make([]scale.Instance, 0, len(p.instances))
	for _, i := range p.instances {
		in.Instances = append(in.Instances, i.scaled(&p.in))
	}
	var err error
	p.result, err = scale.Plan(in)
	p.creations = nil
	for _, c := range p.result.Create {
		creation := Creation{Slot: c.Slot, Revision: p.in.Current.Name}
		if c.Updated {
			creation.Revision = p.in.Update.Name
		}
		if len(p.in.Members) > 0 {
			creation.Member = p.in.Members[0] // the others follow when the leader exists
		}
		p.creations = append(p.creations, creation)
	}
	for _, i := range p.instances {
		i.chosen = false
	}
	for i := range p.result.Update {
		p.find(p.result.Update[i].Name).chosen = true
	}
	return err
}

// Next returns the next writes, and nil at the end of the pass. They are independent of each other, so send them in any
// order or at the same time, and give each answer to Answer, from one goroutine at a time. A write that was not sent needs no
// answer. Next must only be called when no write is under way.
func (p *Pass) Next() []*Write {
	for p.stage < stageEnd {
		p.stage++
		if writes := p.begin(); len(writes) > 0 {
			return writes
		}
	}
	return nil
}

// begin returns the first writes of the stage.
func (p *Pass) begin() []*Write {
	for _, i := range p.instances {
		i.begin(p.stage == stageContinue)
	}
	switch p.stage {
	case stageFirst:
		return p.first()
	case stageComplete:
		return p.complete()
	case stageScale:
		return p.scale()
	case stageContinue:
		return p.continueAll()
	case stageUpdate:
		return p.updateAll()
	case stageEnd:
		return p.replan()
	}
	return nil
}

// scale changes the number of instances.
func (p *Pass) scale() []*Write {
	if p.scaled {
		return nil
	}
	p.wake(p.result.RequeueAfter)
	switch {
	case len(p.result.Restore) > 0:
		return p.each(p.result.Restore, taskRestore)
	case len(p.creations) > 0:
		return p.create(p.creations)
	}
	return p.each(p.result.Delete, taskDelete)
}

// each gives instances a task, and returns its first writes.
func (p *Pass) each(some []scale.Instance, t task) []*Write {
	var writes []*Write
	for k := range some {
		writes = append(writes, p.start(p.find(some[k].Name), t)...)
	}
	return writes
}

func (p *Pass) start(i *instance, t task) []*Write {
	i.task = t
	return p.follow(i)
}

// create returns the writes that create pods.
func (p *Pass) create(creations []Creation) []*Write {
	if p.in.Build == nil {
		p.fail(Failure{Err: errors.New("create pods: Input.Build is missing")})
		return nil
	}
	built, err := p.in.Build(slices.Clone(creations))
	if err != nil {
		p.fail(Failure{Err: err})
		return nil
	}
	var writes []*Write
	for k, objects := range built {
		if len(objects) == 0 || k >= len(creations) {
			continue
		}
		pod, _ := objects[len(objects)-1].(*corev1.Pod)
		writes = append(writes, &Write{
			Write: write.Write{Verb: write.Create, Object: objects[0]}, Action: ActionCreate,
			Instance: creations[k].Instance, Revision: creations[k].Revision, Pod: pod, rest: objects[1:],
		})
	}
	return writes
}

// continueAll continues updates that have begun, and moves states. Where scaling has failed throughout, updates go on
// with the instances that exist.
func (p *Pass) continueAll() []*Write {
	if p.scaled {
		return nil
	}
	if p.failed() {
		if err := p.plan(true); err != nil {
			p.fail(Failure{Err: err})
			return nil
		}
	}
	var writes []*Write
	for _, i := range p.instances {
		if !i.gone {
			writes = append(writes, p.start(i, taskContinue)...)
		}
	}
	return writes
}

// updateAll begins the planned updates.
func (p *Pass) updateAll() []*Write {
	if p.scaled || p.moved {
		return nil
	}
	var writes []*Write
	for k := range p.result.Update {
		i := p.find(p.result.Update[k].Name)
		if i.over {
			continue
		}
		if p.in.MayUpdate != nil && !i.allowed {
			ok, why := p.in.MayUpdate(i.leader().pod)
			if !ok {
				p.note(note.Waiting, NoteRefused, i.Name, why)
				p.wake(retryRefused)
				p.replans = maxReplans // the order of updates is kept: those after this one wait with it
				break
			}
			i.allowed = true
		}
		writes = append(writes, p.start(i, taskUpdate)...)
	}
	return writes
}

// replan makes another plan of updates where instances of the last one were refused: they must not keep others from
// their turn.
func (p *Pass) replan() []*Write {
	skipped := slices.ContainsFunc(p.instances, func(i *instance) bool { return i.skip && i.chosen })
	if !skipped || p.broken || p.scaled || p.moved || p.replans >= maxReplans {
		return nil
	}
	p.replans++
	notes := p.result.Notes
	if err := p.plan(true); err != nil {
		p.fail(Failure{Err: err})
		return nil
	}
	p.result.Notes = notes // those of the first plan, which was made for all
	p.stage = stageUpdate
	return p.updateAll()
}

// Answer takes what the API server answered to a write: the object as it is now, or the error. It returns the writes
// that follow from the answer.
func (p *Pass) Answer(w *Write, object write.Object, err error) []*Write {
	if w.member != nil {
		w.member.busy = false
	}
	if w.Verb == write.Delete && apierrors.IsNotFound(err) {
		err = nil
	}
	switch {
	case err == nil:
		return p.succeeded(w, object)
	case w.Verb == write.Create && apierrors.IsAlreadyExists(err) && len(w.rest) > 0:
		return w.createRest() // of an earlier attempt, or of another owner: then the pod does not start, and its events say why
	case w.Verb != write.Create && write.IsOutdated(err):
		p.wake(retryOutdated)
		p.outdated = true
		if w.of != nil {
			w.of.over = true
		}
		return nil
	}
	p.fail(Failure{Write: w, Object: w.Object.GetName(), Err: fmt.Errorf("%s: %w", w, err)})
	if w.of != nil {
		w.of.over = true
		w.of.skip = w.of.skip || p.stage >= stageContinue
	}
	p.broken = p.broken || !write.IsRefused(err)
	return nil
}

// IsOutdated reports whether a write was decided upon an older object, so that the pass is to be made again.
func (p *Pass) IsOutdated() bool { return p.outdated }

func (p *Pass) succeeded(w *Write, object write.Object) []*Write {
	if (p.stage == stageScale || p.stage == stageComplete) && len(w.rest) == 0 {
		p.scaled = true
	}
	switch w.Action {
	case ActionFirst, ActionDeleteOwned:
		return nil
	case ActionCreate:
		return w.createRest()
	case ActionDelete:
		return p.deleteOwned(w)
	case ActionMove, ActionLabel:
		p.moved = true
	}
	if pod, is := object.(*corev1.Pod); is && w.member != nil {
		w.member.pod = pod
	}
	return p.follow(w.of)
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

// deleteOwned deletes what belonged to a pod that is deleted.
func (p *Pass) deleteOwned(w *Write) []*Write {
	if w.member != nil {
		w.member.deleted = true
	}
	var writes []*Write
	if p.in.Owned != nil && p.stage != stageFirst {
		for _, object := range p.in.Owned(w.Pod) {
			writes = append(writes, &Write{Write: write.Write{Verb: write.Delete, Object: object}, Action: ActionDeleteOwned, Instance: w.Instance, Pod: w.Pod})
		}
	}
	return writes
}

func (p *Pass) fail(f Failure) {
	f.Scaling = p.stage <= stageScale
	p.failures = append(p.failures, f)
}

// failed reports whether anything failed before updates.
func (p *Pass) failed() bool { return len(p.failures) > 0 }

// wake asks for another pass after a time.
func (p *Pass) wake(after time.Duration) {
	if after > 0 && (p.after == 0 || after < p.after) {
		p.after = after
	}
}

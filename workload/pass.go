package workload

import (
	"maps"
	"slices"
	"time"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

// Pass is one pass over the pods of a workload. It is not safe for concurrent use.
type Pass struct {
	in        Input
	instances []*instance
	byName    map[string]*instance
	changes   changes
	labels    map[string]map[string]string
	ranks     map[string]int
	result    scale.Result
	repeats   repeats
	order     order
	// restarts are what is known of restarts, and restarting is what the pass does about failed pods, by instance.
	restarts   Restarts
	restarting map[string]*restarting

	stage stage
	// round counts the stages that have begun. A member is busy in the round in which its last write was returned.
	round int32
	// now is the time of the latest answer, and of the observation before the first one.
	now time.Time
	// replans counts the plans made because instances of the one before were rejected.
	replans int
	// broken means that a write failed whose outcome is unknown, or that others would fail too; outdated that one was
	// decided upon an older object.
	broken, outdated bool
	// scaled and moved mean that the number or the state of pods has changed, which the next pass observes first.
	scaled, moved bool
	// uncertain means that a pod may be deleted, although the answer is an error.
	uncertain bool
	// deferred means that a slot to fill waits, as for the name of a claim.
	deferred bool
	// creations are those of the current plan, and built what Build returned for them.
	creations []Creation

	failures []Failure
	notes    []note.Note
	after    time.Duration
}

// stage is a part of a pass. All writes of a stage are independent of each other.
type stage int8

const (
	// stageStore makes the update revision the newest.
	stageStore stage = iota
	// stageFirst sends the writes of the caller, and deletes pods that have finished.
	stageFirst
	// stageComplete creates what groups lack, and deletes what is left of groups without a leader.
	stageComplete
	// stageScale restores, creates or deletes instances.
	stageScale
	// stageFree deletes instances where none of those that are missing can be created.
	stageFree
	// stageContinue continues updates that have begun, and moves states.
	stageContinue
	// stageAsk asks for the updates that begin next.
	stageAsk
	// stageUpdate begins updates.
	stageUpdate
	// stageReplan begins other updates where some were refused.
	stageReplan
	// stageTrim deletes old revisions.
	stageTrim
	stageEnd
)

const (
	// maxReplans bounds the plans of a pass.
	maxReplans = 3
	// maxWritesPerPod bounds the writes of a pod in one pass, whatever they are.
	maxWritesPerPod = 12
	// retryOutdated is when to observe again after a write that was decided upon an older object, the first times in a
	// row.
	retryOutdated = time.Second
	// retryRefused is when to ask again for an update that was refused.
	retryRefused = time.Second
	// retryEviction is when to ask again for an eviction that was refused, where the API server suggests no longer time.
	retryEviction = 5 * time.Second
)

// Plan begins a pass. The error is one of scale.Plan, also for what is wrong with Input.Group.
func Plan(in Input) (*Pass, error) {
	in.Scale.Keys = in.Policy.Keys
	p := &Pass{in: in, now: in.Scale.Now, repeats: repeats{known: in.Repeats, revision: in.Update.Name}}
	p.labels = map[string]map[string]string{}
	if err := in.check(); err != nil {
		return nil, err
	}
	p.changes, p.order, p.restarts = newChanges(&p.in), orderOf(&p.in), in.Restarts
	p.observeRestarts()
	p.observe()
	if err := p.plan(planAll); err != nil {
		return nil, err
	}
	return p, nil
}

// extent is what a plan may do.
type extent int8

const (
	planAll extent = iota
	// planExisting leaves missing instances missing, planUpdates leaves the number of instances as it is.
	planExisting
	planUpdates
)

// plan makes a plan of the numbers, of the instances as they are now.
func (p *Pass) plan(e extent) error {
	in := p.in.Scale
	in.UpdateOnly, in.NoCreate = in.UpdateOnly || e == planUpdates, in.NoCreate || e == planExisting
	if len(p.in.Targets) > 0 {
		in.Pinned = slices.Sorted(maps.Keys(p.in.Targets))
	}
	in.Instances = make([]scale.Instance, 0, len(p.instances))
	for _, i := range p.instances {
		in.Instances = append(in.Instances, p.instanceOf(i))
	}
	var err error
	p.result, err = scale.Plan(in)
	p.creations = nil
	for _, c := range p.result.Create {
		creation := Creation{Slot: c.Slot, Revision: p.in.Current.Name}
		if c.Updated {
			creation.Revision = p.in.goal(c.Slot).Name
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
// order or at the same time, and give each answer to Answer, from one goroutine at a time. A write that was not sent
// needs no answer. Next must only be called when no write is under way.
func (p *Pass) Next() []*Write {
	if writes := p.nextStored(); len(writes) > 0 {
		return writes
	}
	for p.stage < stageEnd {
		p.stage++
		if writes := p.begin(); len(writes) > 0 {
			return writes
		}
	}
	return nil
}

// nextStored returns the next writes that make the update revision the newest. Where these fail, the pass ends.
func (p *Pass) nextStored() []*Write {
	if p.stage != stageStore || p.in.Store == nil {
		return nil
	}
	writes := p.stored(p.in.Store.Next())
	if p.in.Store.Err() != nil {
		p.stage = stageEnd
	}
	return writes
}

// begin returns the first writes of the stage.
func (p *Pass) begin() []*Write {
	p.round++
	switch p.stage {
	case stageFirst:
		return p.first()
	case stageComplete:
		return p.complete()
	case stageScale:
		return p.scale()
	case stageFree:
		return p.free()
	case stageContinue:
		return p.continueAll()
	case stageAsk:
		return p.ask()
	case stageUpdate:
		return p.updateAll()
	case stageReplan:
		return p.replan()
	case stageTrim:
		return p.trim()
	case stageStore, stageEnd:
	}
	return nil
}

package workload

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/write"
)

// follow returns what to write next of an instance, as its pods are now.
func (p *Pass) follow(i *instance) []*Write {
	if i == nil || p.isOver(i) {
		return nil
	}
	switch {
	case p.stage == stageFirst && i.task != taskDelete:
		return p.prepare(i)
	case p.isGroup() && p.stage != stageFirst:
		if writes, decided := p.followGroup(i); decided {
			return writes
		}
	}
	var writes []*Write
	for _, m := range i.members {
		if p.isBusy(m) || m.deleted {
			continue
		}
		switch i.task {
		case taskRestore:
			writes = p.add(writes, i, m, p.move(i, m, lifecycle.Move{To: kruise.LifecycleStatePreparingNormal}))
		case taskDelete:
			writes = p.add(writes, i, m, p.delete(i, m))
		case taskUpdate:
			writes = p.add(writes, i, m, p.update(i, m))
		case taskContinue:
			writes = p.add(writes, i, m, p.proceed(i, m))
		}
	}
	return writes
}

// followGroup returns what to write next of a group, and reports false where its pods are independent of each other.
func (p *Pass) followGroup(i *instance) (writes []*Write, decided bool) {
	switch i.task {
	case taskUpdate:
		return p.updateGroup(i, p.target(), true), true
	case taskContinue:
		return p.continueGroup(i), true
	case taskDelete:
		if p.in.Group.Traffic == TrafficEach && p.isMixed(i) && !p.mayGo(i) {
			return nil, true
		}
		if p.in.Group.Restart.Policy == RestartPod {
			return p.deleteInOrder(i), true
		}
	case taskRestore:
	}
	return nil, false
}

// add adds a write of a member, unless the same was written too often, or the pod in this pass.
func (p *Pass) add(writes []*Write, i *instance, m *member, w *Write) []*Write {
	if w == nil {
		return writes
	}
	w.Instance, w.Pod, w.of, w.member = i.Name, m.pod, i, m
	pause := p.repeats.pause(w, p.now)
	if w.Action != ActionPrepare { // there are as many of these as the caller returned
		i.writes++
	}
	if int(i.writes) > maxWritesPerPod*len(i.members) {
		pause = longestPause
	}
	if pause > 0 {
		if w.Action != ActionLabel { // the pod can do without
			p.refrain(i)
		}
		p.note(note.Blocked, NoteReverted, m.pod.Name, textReverted)
		p.wake(pause)
		return writes
	}
	m.busy, m.harmless = p.round, w.harmless || w.Action == ActionContinue || w.Action == ActionLabel
	return append(writes, w)
}

// move returns the next write of a move; nil when it is done.
func (p *Pass) move(i *instance, m *member, move lifecycle.Move) *Write {
	pod := m.pod
	if m.child != nil { // with all of its metadata, upon which the write is decided
		pod = &corev1.Pod{ObjectMeta: meta.AsPartialObjectMetadata(m.child).ObjectMeta}
	}
	w, err := move.Next(pod, p.now)
	if err != nil {
		return p.refuse(i, m, err)
	}
	if w == nil {
		return nil
	}
	w.Object = m.object()
	return &Write{Write: *w, Action: ActionMove}
}

// refuse ends what is done with an instance.
func (p *Pass) refuse(i *instance, m *member, err error) *Write {
	p.refrain(i)
	p.fail(Failure{Object: m.pod.Name, Err: fmt.Errorf("pod %s: %w", m.pod.Name, err)})
	return nil
}

// delete deletes a pod, unless a hook holds it.
func (p *Pass) delete(i *instance, m *member) *Write {
	if w := p.beforeDelete(m); w != nil { // also where a hook holds the pod: another client may delete it
		return w
	}
	if verdict, move := lifecycle.BeforeDelete(p.situation(i, m)); verdict != lifecycle.Go {
		if p.stage == stageFirst && move == (lifecycle.Move{}) { // no plan counts the pod
			p.note(note.Waiting, scale.NoteHooked, m.pod.Name, "waits for its preDelete hook to let it go")
		}
		return p.move(i, m, move)
	}
	verb := write.Delete
	if p.in.Evict && p.stage != stageFirst {
		verb = write.Evict
	}
	return &Write{Write: write.Write{Verb: verb, Object: m.object()}, Action: ActionDelete}
}

// beforeDelete returns the next write that comes before the deletion of a pod; nil where all are made.
func (p *Pass) beforeDelete(m *member) *Write {
	if p.in.Before == nil {
		return nil
	}
	if before := p.in.Before(m.pod); int(m.prepared) < len(before) {
		return &Write{Write: before[m.prepared], Action: ActionPrepare}
	}
	return nil
}

// proceed continues an update that has begun, then moves the state, then adds missing labels.
func (p *Pass) proceed(i *instance, m *member) *Write {
	if m.child != nil {
		return p.proceedChild(i, m)
	}
	action, err := inplace.Next(inplace.Update{Pod: m.pod}, p.in.Policy, p.now)
	if err != nil {
		return p.refuse(i, m, err)
	}
	p.explain(action)
	if action.Verdict == inplace.Write {
		return &Write{Write: *action.Write, Action: ActionContinue}
	}
	if move := p.settle(i, m); move != (lifecycle.Move{}) {
		return p.move(i, m, move)
	}
	return p.label(m)
}

// explain notes what an update waits for, and asks for another pass at the end of a grace period: no event will report
// it.
func (p *Pass) explain(action inplace.Action) {
	for _, n := range action.Notes {
		if n.Code == inplace.NoteNotStarted {
			continue // the pod is new, and counted as unavailable
		}
		p.notes = append(p.notes, n)
		if n.Code == inplace.NoteGrace && action.Verdict == inplace.Wait {
			p.wake(action.After)
		}
	}
}

// label adds labels of the revision that a pod from before them lacks.
func (p *Pass) label(m *member) *Write {
	name := m.pod.Labels[p.in.revisionLabel()]
	if p.in.RevisionLabels == nil || name == "" {
		return nil
	}
	labels, known := p.labels[name]
	if !known {
		labels = p.in.RevisionLabels(name)
		p.labels[name] = labels
	}
	missing := map[string]*string{}
	for key := range labels {
		if _, ok := m.pod.Labels[key]; !ok {
			missing[key] = ptr.To(labels[key])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	ops := append(write.TestUID(m.pod), write.TestLabel(m.pod, p.in.revisionLabel()))
	ops = append(ops, write.SetLabels(m.pod, missing)...)
	return &Write{Write: *write.JSON(m.pod, write.Main, ops...), Action: ActionLabel}
}

// settle returns the move that follows from what a pod has become. A pod that is new and updated already is settled
// when the update is complete.
func (p *Pass) settle(i *instance, m *member) lifecycle.Move {
	if p.in.Policy.Keys.StateOf(m.pod) == kruise.LifecycleStatePreparingNormal && !p.isComplete(i, m) {
		return lifecycle.Move{}
	}
	return lifecycle.Settle(p.situation(i, m))
}

// situation is a pod as its hooks see it.
func (p *Pass) situation(i *instance, m *member) lifecycle.Situation {
	state := p.in.Policy.Keys.StateOf(m.pod)
	return lifecycle.Situation{
		Pod: m.pod, Hooks: p.in.Scale.Hooks, Keys: p.in.Policy.Keys, NeedsNode: p.in.NeedsNode,
		Completed: state != kruise.LifecycleStateUpdating || p.isComplete(i, m),
		AtTarget:  state == kruise.LifecycleStatePreparingUpdate && !p.mayMove(i, m),
	}
}

// mayMove reports whether pods such as this one go to another revision. A hook that holds the pod before that goes on
// holding it then.
func (p *Pass) mayMove(i *instance, m *member) bool {
	updated := p.in.Update.matches(p.in.revisionOf(m.pod))
	switch in := &p.in.Scale; {
	case in.Slots == nil && updated:
		return p.result.Difference.Update < 0
	case in.Slots == nil:
		return p.result.Difference.Update > 0
	case in.Priority == nil && len(in.Scatter) == 0:
		at, isSlot := p.rankOf(i.Name)
		return !updated && isSlot && at >= int(in.Limits.Partition) && at < len(in.Slots)
	}
	return !updated
}

// stateWhileUpdated is Updating, except for a pod that its preNormal hook has not let become Normal: updated or not,
// the pod waits for the hook.
func (p *Pass) stateWhileUpdated(pod *corev1.Pod) kruise.LifecycleState {
	hooks := p.in.Scale.Hooks
	if hooks != nil && hooks.PreNormal != nil && p.in.Policy.Keys.StateOf(pod) == kruise.LifecycleStatePreparingNormal &&
		!lifecycle.HasAll(pod, hooks.PreNormal) {
		return kruise.LifecycleStatePreparingNormal
	}
	return kruise.LifecycleStateUpdating
}

var errUnknownRevision = errors.New("the revision of the leader is no longer stored")

func (p *Pass) errState(pod *corev1.Pod) error {
	return fmt.Errorf("is in state %q, which no update starts from", p.in.Policy.Keys.StateOf(pod))
}

package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/write"
)

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

// Disrupts reports whether the pass may delete or update an instance, now or where its creations fail. A caller whose
// observation of the workload may be older than that of the pods makes sure before, as a new leader does: pods that the
// workload wants since look like surplus. It comes before the first Next.
func (p *Pass) Disrupts() bool {
	disrupts := func() bool { return len(p.result.Delete)+len(p.result.Update) > 0 }
	if disrupts() || len(p.creations) == 0 {
		return disrupts()
	}
	may := p.plan(planUpdates) == nil && disrupts() || p.frees() && p.plan(planExisting) == nil && disrupts()
	return p.plan(planAll) != nil || may // it has succeeded before
}

// frees reports whether instances are deleted where creations fail.
func (p *Pass) frees() bool { return p.in.Scale.Slots != nil && !p.in.Scale.InOrder }

// free deletes instances where creations are rejected or wait. What these wait for may be what is to be deleted, as the
// quota of the pods.
func (p *Pass) free() []*Write {
	if !p.frees() || p.scaled || len(p.creations) == 0 || !p.failed() && !p.deferred {
		return nil
	}
	p.planAgain(planExisting)
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
	built, err := p.in.build(slices.Clone(creations))
	if err != nil {
		p.fail(Failure{Err: err})
		return nil
	}
	var writes []*Write
	p.deferred = p.in.Scale.Slots != nil &&
		(len(built) < len(creations) || slices.ContainsFunc(built, func(o []write.Object) bool { return len(o) == 0 }))
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

// continueAll continues updates that have begun, and moves states. Where scaling has failed throughout, or
// all slots to fill wait, updates go on with the instances that exist.
func (p *Pass) continueAll() []*Write {
	if p.scaled {
		return nil
	}
	if p.failed() || p.deferred {
		p.planAgain(planUpdates)
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
	if p.scaled || p.moved || p.uncertain {
		return nil
	}
	var writes []*Write
	for k := range p.result.Update {
		i := p.find(p.result.Update[k].Name)
		if p.isOver(i) {
			continue
		}
		if !i.allowed && p.disrupts(i) {
			if p.in.Ask || !p.may(i) {
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
	p.planAgain(planUpdates)
	p.result.Notes = notes // those of the first plan, which was made for all
	p.stage = stageAsk
	return p.ask()
}

// complete creates the members that groups lack, at the revision of their group, and deletes what is left of groups
// without a leader, and pods that failed.
func (p *Pass) complete() []*Write {
	if len(p.in.Members) == 0 && len(p.restarting) == 0 {
		return nil
	}
	var writes []*Write
	var missing []Creation
	for _, i := range p.instances {
		switch r := p.restarting[i.Name]; {
		case r.held:
		case len(p.in.Members) > 0 && i.gone, r.all:
			writes = append(writes, p.start(i, taskDelete)...)
		default:
			for _, m := range i.members {
				if r.pods[m.pod] {
					writes = p.add(writes, i, m, p.delete(i, m))
				}
			}
			if !i.gone && !i.marked && !p.anyIn(i, kruise.LifecycleStatePreparingDelete) {
				missing = append(missing, p.missing(i)...)
			}
		}
	}
	if len(missing) > 0 {
		writes = append(writes, p.create(missing)...)
	}
	return writes
}

// missing returns the members to create of a group; none for a group that is about to go. Where a pod that was deleted
// for its update left no other pod of its revision behind, the plan shows which revision the group goes to.
func (p *Pass) missing(i *instance) []Creation {
	var missing []Creation
	for rank, m := range p.in.Members {
		if !i.has(rank, m.Name) {
			missing = append(missing, Creation{Instance: i.Name, Member: m})
		}
	}
	isDeleted := func(d scale.Instance) bool { return d.Name == i.Name }
	if len(missing) == 0 || !p.isWanted(i.Name) || slices.ContainsFunc(p.result.Delete, isDeleted) {
		return nil
	}
	r := p.in.revision(p.goalOf(i))
	if p.in.Group.Blocked == BlockedPod && i.chosen {
		r = p.target()
	}
	if r == nil {
		return nil
	}
	for k := range missing {
		missing[k].Revision = r.Name
	}
	return missing
}

// has reports whether a member exists, or a pod that terminates still has its name.
func (i *instance) has(rank int, name string) bool {
	return slices.ContainsFunc(i.members, func(m *member) bool { return m.rank == int32(rank) }) ||
		slices.ContainsFunc(i.Pods, func(pod Pod) bool {
			return pod.Member == name && pod.Pod != nil && isTerminating(pod.Pod)
		})
}

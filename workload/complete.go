package workload

import (
	"slices"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// complete creates the members that groups lack, at the revision of their group, and deletes what is left of groups
// without a leader, and pods that failed.
func (p *Pass) complete() []*Write {
	if len(p.in.Members) == 0 && p.restarting == nil {
		return nil
	}
	var writes []*Write
	var missing []Creation
	for _, i := range p.instances {
		switch {
		case i.restarts != nil && i.restarts.held:
		case len(p.in.Members) > 0 && i.gone, i.restarts != nil && i.restarts.all:
			writes = append(writes, p.start(i, taskDelete)...)
		default:
			for _, m := range i.members {
				if i.restarts != nil && i.restarts.pods[m.pod] {
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
		if !i.has(rank, m.Name) && (!p.in.Group.CreateInOrder || p.isNextToCreate(i, rank)) {
			missing = append(missing, Creation{Instance: i.Name, Member: m})
		}
	}
	isDeleted := func(d scale.Instance) bool { return d.Name == i.Name }
	if len(missing) == 0 || !p.in.isWanted(i.Name) || slices.ContainsFunc(p.result.Delete, isDeleted) {
		return nil
	}
	r := p.in.revision(p.goalOf(i))
	if p.in.Group.Blocked == BlockedPod && i.chosen {
		r = p.targetOf(i)
	}
	if r == nil {
		return nil
	}
	for k := range missing {
		missing[k].Revision = r.Name
	}
	return missing
}

// isNextToCreate reports whether all pods that come before a member are ready.
func (p *Pass) isNextToCreate(i *instance, rank int) bool {
	for _, before := range p.order.before[rank] {
		m := i.at(before)
		if m == nil || !isReady(m.pod, p.in.Policy.Keys) {
			return false
		}
	}
	return true
}

// has reports whether a member exists, or a pod that terminates still has its name.
func (i *instance) has(rank int, name string) bool {
	return slices.ContainsFunc(i.members, func(m *member) bool { return m.rank == int32(rank) }) ||
		slices.ContainsFunc(i.Pods, func(pod Pod) bool {
			return pod.Member == name && pod.Pod != nil && isTerminating(pod.Pod)
		})
}

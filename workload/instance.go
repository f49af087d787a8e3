package workload

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/write"
)

// task is what a stage does with an instance.
type task int8

const (
	taskContinue task = iota
	taskRestore
	taskDelete
	taskUpdate
)

// instance is an instance with what the pass has made of it so far. There are many: it is small.
type instance struct {
	*Instance

	// members are the pods that are neither finished nor terminating, the leader first.
	members []*member
	// listed has room for the pods of a plan.
	listed []*corev1.Pod
	// writes counts those of the pass.
	writes int16
	task   task
	// over is the stage from which on nothing more is written: see isOver.
	over stage

	marked bool
	// gone means that a group has lost its leader: what is left goes too.
	gone bool
	// chosen means that the plan updates the instance, and skip that no other plan of this pass chooses it.
	chosen, skip bool
	// allowed means that the update was allowed in this pass.
	allowed bool
}

// member is one pod of an instance.
type member struct {
	pod *corev1.Pod
	// child is the object that the pod stands for; nil for a pod.
	child write.Object
	// rank is the place in Input.Members; below zero where an instance is one pod.
	rank int32
	// busy is the round in which the write was returned that is under way; zero for none.
	busy int32
	// harmless means that the write that is under way leaves the pod available.
	harmless bool
	// prepared counts the writes of Input.Before that have succeeded, ahead those of Input.Ahead.
	prepared, ahead int16
	deleted         bool
}

// isBusy reports whether a write of the pod is under way. A write of an earlier round was not sent.
func (p *Pass) isBusy(m *member) bool { return m.busy == p.round }

// isOver reports whether nothing more is written of an instance. What went wrong with the number of instances does not
// keep their updates from going on.
func (p *Pass) isOver(i *instance) bool {
	return i.over != 0 && (i.over >= stageContinue || p.stage < stageContinue)
}

// refrain ends what is done with an instance, so that other instances take its turn.
func (p *Pass) refrain(i *instance) { i.over, i.skip = max(p.stage, i.over), true }

func (i *instance) leader() *member { return i.members[0] }

// isGroup reports whether instances have several pods.
func (p *Pass) isGroup() bool { return len(p.in.Members) > 1 }

// role is the name of the template of a pod.
func (p *Pass) role(m *member) string {
	if m.rank < 0 {
		return ""
	}
	return p.in.Members[m.rank].Role
}

// observe sorts pods into instances. What is allocated for all of them together is not allocated for each.
func (p *Pass) observe() {
	n := 0
	for k := range p.in.Instances {
		n += len(p.in.Instances[k].Pods)
	}
	instances, members, pointers := make([]instance, len(p.in.Instances)), make([]member, n), make([]*member, n)
	pods := make([]*corev1.Pod, n)
	for k := range instances {
		i := &instances[k]
		i.Instance = &p.in.Instances[k]
		n := len(i.Pods)
		i.members, i.listed = pointers[:0:n], pods[:0:n]
		if i.observe(&p.in, members[:n]) {
			p.instances = append(p.instances, i)
		}
		members, pointers, pods = members[n:], pointers[n:], pods[n:]
	}
	slices.SortStableFunc(p.instances, func(a, b *instance) int { return cmp.Compare(a.Name, b.Name) })
}

// find returns an instance that a plan names.
func (p *Pass) find(name string) *instance {
	byName := func(i *instance, name string) int { return cmp.Compare(i.Name, name) }
	at, _ := slices.BinarySearchFunc(p.instances, name, byName)
	return p.instances[at]
}

// observe sorts the pods of an instance, and reports whether there are any.
func (i *instance) observe(in *Input, space []member) (exists bool) {
	members := in.Members
	i.marked = i.MarkedForDeletion
	for k, pod := range i.Pods {
		if pod.Pod == nil {
			continue
		}
		exists = true
		if isTerminating(pod.Pod) {
			continue
		}
		rank := slices.IndexFunc(members, func(m Member) bool { return m.Name == pod.Member })
		if rank < 0 && len(members) > 0 {
			continue // it is deleted first
		}
		i.marked = i.marked || !in.IgnoreMarks && in.isMarked(pod.Pod)
		space[k] = member{pod: pod.Pod, child: pod.Child, rank: int32(rank)}
		i.members = append(i.members, &space[k])
	}
	slices.SortStableFunc(i.members, func(a, b *member) int { return cmp.Compare(a.rank, b.rank) })
	i.gone = len(i.members) == 0 ||
		len(members) > 0 && i.leader().rank != 0 && in.Group.Restart.Policy != RestartPod
	return exists
}

// instanceOf is an instance as package scale looks at it.
func (p *Pass) instanceOf(i *instance) scale.Instance {
	s := scale.Instance{
		Name:              i.Name,
		Size:              max(len(p.in.Members), 1),
		Pods:              i.listed,
		MarkedForDeletion: i.marked,
		NotNow:            i.skip || i.NotNow,
		Terminating:       i.gone,
		Outdated:          i.Outdated,
		Impaired:          i.Impaired,
	}
	if i.gone {
		s.Finished = slices.ContainsFunc(i.Pods, p.disposes)
	} else {
		s.Updated = p.in.Update.matches(p.goalOf(i))
		if p.in.Group.Traffic == TrafficEach && p.isGroup() && p.isMixed(i) {
			s.Size++ // it spends of the budget until it is updated, also while all its pods are available
		}
	}
	for _, m := range i.members {
		s.Pods = append(s.Pods, m.pod)
		s.Impaired = s.Impaired || p.in.Scale.Slots != nil && p.in.Policy.Relabel == inplace.RelabelLast &&
			!inplace.Settled(m.pod, p.in.Policy) // without the readiness gate it may look available
	}
	return s
}

func (in *Input) revisionLabel() string {
	return in.Policy.Keys.RevisionKey()
}

// revisionOf returns the revision that the spec of a pod has, or is about to have.
func (in *Input) revisionOf(pod *corev1.Pod) string {
	if found := inplace.RevisionOf(pod, in.Policy); found != "" || in.Unlabelled == nil {
		return found
	}
	return in.Unlabelled(pod)
}

// IsUpdated reports whether a pod has the label of the update revision, or was created with that revision and has none.
func (in *Input) IsUpdated(pod *corev1.Pod) bool {
	label := in.Policy.Keys.RevisionOf(pod)
	if label == "" && in.Unlabelled != nil && inplace.RevisionOf(pod, in.Policy) == "" {
		label = in.Unlabelled(pod)
	}
	return in.Update.matches(label)
}

// first returns the writes of the caller, and deletes pods that have finished, as evicted ones, and pods that are no
// member of their group. Those that have finished never run again, and as long as they exist their names and claims are
// of no use to their successors. What they own is kept. Instances that are deleted in order wait for their turn.
func (p *Pass) first() []*Write {
	writes := make([]*Write, 0, len(p.in.First))
	for k := range p.in.First {
		writes = append(writes, &Write{Write: p.in.First[k], Action: ActionFirst})
	}
	for k := range p.in.Instances {
		for _, pod := range p.in.Instances[k].Pods {
			if p.in.Scale.UpdateOnly || pod.Pod == nil || p.isMember(pod) || p.keeps(p.in.Instances[k].Name, pod.Pod) {
				continue
			}
			writes = append(writes, p.dispose(&p.in.Instances[k], pod)...)
		}
	}
	for _, i := range p.instances {
		writes = append(writes, p.prepare(i)...)
	}
	return writes
}

// prepare returns, for each member of an instance, the next write that comes before its deletion.
func (p *Pass) prepare(i *instance) []*Write {
	var writes []*Write
	for _, m := range i.members {
		if !p.isBusy(m) {
			writes = p.add(writes, i, m, p.beforeDelete(m))
		}
	}
	return writes
}

// isMember reports whether a pod is a member of its instance that neither has finished nor terminates.
func (p *Pass) isMember(pod Pod) bool {
	return !isTerminating(pod.Pod) && !p.isSurplus(pod.Member)
}

// disposes reports whether the plan decides when a pod is deleted that has finished. It does so while there is a write
// to make.
func (p *Pass) disposes(pod Pod) bool {
	if !p.in.Scale.InOrder || len(p.in.Members) > 0 || pod.Pod == nil || pod.DeletionTimestamp != nil ||
		!IsFinished(pod.Pod) || p.keeps(pod.Name, pod.Pod) {
		return false
	}
	verdict, move := lifecycle.BeforeDelete(lifecycle.Situation{
		Pod: pod.Pod, Hooks: p.in.Scale.Hooks, Keys: p.in.Policy.Keys,
	})
	return verdict == lifecycle.Go || move != (lifecycle.Move{})
}

// dispose returns the next writes of a pod that has finished, or that is no member of its group, as those of an
// instance of its own. Where instances are deleted in order, it deletes the pod once the plan deletes the instance.
func (p *Pass) dispose(i *Instance, pod Pod) []*Write {
	alone := &instance{Instance: i, members: []*member{{pod: pod.Pod, child: pod.Child, rank: -1}}}
	inTurn := func(planned scale.Instance) bool { return planned.Name == i.Name }
	if pod.DeletionTimestamp != nil || p.disposes(pod) && !slices.ContainsFunc(p.result.Delete, inTurn) {
		return p.prepare(alone)
	}
	return p.start(alone, taskDelete)
}

// isSurplus reports whether a pod of a group is no member.
func (p *Pass) isSurplus(member string) bool {
	return len(p.in.Members) > 0 && !slices.ContainsFunc(p.in.Members, func(m Member) bool { return m.Name == member })
}

// anyIn reports whether a pod of an instance is in a state.
func (p *Pass) anyIn(i *instance, state kruise.LifecycleState) bool {
	return slices.ContainsFunc(i.members, func(m *member) bool { return p.in.Policy.Keys.StateOf(m.pod) == state })
}

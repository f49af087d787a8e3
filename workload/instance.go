package workload

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/write"
)

// task is what a stage does with an instance.
type task int

const (
	taskContinue task = iota
	taskRestore
	taskDelete
	taskUpdate
)

// instance is an instance with what the pass has made of it so far.
type instance struct {
	Name string
	// members are the pods that are neither finished nor terminating, the leader first.
	members []*member
	// backing is where the pods are listed for a plan.
	backing []*corev1.Pod
	// terminating are the names of members that still exist, and go.
	terminating []string
	marked      bool
	// gone means that a group has lost its leader: what is left goes too.
	gone bool
	size int

	task task
	// chosen means that the plan updates the instance.
	chosen bool
	// over means that nothing more is written in this stage, skip that no plan of this pass chooses it again.
	over, skip bool
	// allowed means that MayUpdate has allowed the update in this pass.
	allowed bool
	writes  int
}

// member is one pod of an instance.
type member struct {
	Member

	pod *corev1.Pod
	// busy means that a write of the pod is under way.
	busy    bool
	deleted bool
}

// begin prepares the instance for a stage. Writes that were not sent are not under way any more. What went wrong with the number
// of instances does not keep their updates from going on.
func (i *instance) begin(updates bool) {
	for _, m := range i.members {
		m.busy = false
	}
	i.over = i.over && !updates
}

func (i *instance) leader() *member { return i.members[0] }

// observe sorts pods into instances. What is allocated for all of them together is not allocated for each.
func (p *Pass) observe() {
	n := 0
	for k := range p.in.Instances {
		n += len(p.in.Instances[k].Pods)
	}
	p.instances = make([]*instance, 0, len(p.in.Instances))
	p.pods = make([]*corev1.Pod, n)
	instances, members, pointers := make([]instance, len(p.in.Instances)), make([]member, n), make([]*member, n)
	n = 0
	for k := range p.in.Instances {
		in, i := &p.in.Instances[k], &instances[k]
		next := n + len(in.Pods)
		i.members, i.backing = pointers[n:n:next], p.pods[n:n:next]
		i.observe(in, p.in.Members, members[n:next])
		if n = next; len(i.members) > 0 || len(i.terminating) > 0 {
			p.instances = append(p.instances, i)
		}
	}
	slices.SortStableFunc(p.instances, func(a, b *instance) int { return cmp.Compare(a.Name, b.Name) })
}

// find returns an instance by its name. The map of the names is made when a plan names the first instance.
func (p *Pass) find(name string) *instance {
	if p.byName == nil {
		p.byName = make(map[string]*instance, len(p.instances))
		for _, i := range p.instances {
			p.byName[i.Name] = i
		}
	}
	return p.byName[name]
}

func (i *instance) observe(in *Instance, members []Member, space []member) {
	i.Name, i.marked, i.size = in.Name, in.MarkedForDeletion, max(len(members), 1)
	for k, pod := range in.Pods {
		if pod.Pod == nil {
			continue
		}
		if pod.DeletionTimestamp != nil || isFinished(pod.Pod) {
			i.terminating = append(i.terminating, pod.Member)
			continue
		}
		m := &space[k]
		m.Name, m.pod = pod.Member, pod.Pod
		if at := slices.IndexFunc(members, func(m Member) bool { return m.Name == pod.Member }); at >= 0 {
			m.Member = members[at]
		}
		i.marked = i.marked || isMarked(pod.Pod)
		i.members = append(i.members, m)
	}
	rank := func(m *member) int { return slices.Index(members, m.Member) }
	if len(i.members) > 1 {
		slices.SortStableFunc(i.members, func(a, b *member) int { return cmp.Compare(rank(a), rank(b)) })
	}
	i.gone = len(i.members) == 0 || len(members) > 0 && i.leader().Member != members[0]
}

// scaled is the instance as package scale looks at it.
func (i *instance) scaled(in *Input) scale.Instance {
	s := scale.Instance{
		Name: i.Name, Size: i.size, Pods: i.backing[:0], MarkedForDeletion: i.marked, NotNow: i.skip,
		Terminating: i.gone,
	}
	if !i.gone {
		s.Updated = in.Update.matches(i.leader().pod.Labels[in.revisionLabel()])
	}
	for _, m := range i.members {
		s.Pods = append(s.Pods, m.pod)
	}
	return s
}

func (in *Input) revisionLabel() string {
	return cmp.Or(in.Policy.RevisionLabel, pub.PodRevisionLabelKey)
}

// first returns the writes of the caller, and deletes pods that have finished, as evicted ones: they never run again, and
// as long as they exist their names and claims are of no use to their successors. What they own is kept.
func (p *Pass) first() []*Write {
	writes := make([]*Write, 0, len(p.in.First))
	for k := range p.in.First {
		writes = append(writes, &Write{Write: p.in.First[k], Action: ActionFirst})
	}
	for k := range p.in.Instances {
		for _, pod := range p.in.Instances[k].Pods {
			if pod.Pod == nil || !isFinished(pod.Pod) || pod.DeletionTimestamp != nil || p.isHooked(pod.Pod) {
				continue
			}
			writes = append(writes, &Write{Write: write.Write{Verb: write.Delete, Object: pod.Pod}, Action: ActionDelete, Instance: p.in.Instances[k].Name, Pod: pod.Pod})
		}
	}
	return writes
}

func (p *Pass) isHooked(pod *corev1.Pod) bool {
	return p.in.Scale.Hooks != nil && lifecycle.HasAny(pod, p.in.Scale.Hooks.PreDelete)
}

// complete creates the members that groups lack, at the revision of their leader, and deletes what is left of groups
// without one.
func (p *Pass) complete() []*Write {
	if len(p.in.Members) == 0 {
		return nil
	}
	var writes []*Write
	var missing []Creation
	for _, i := range p.instances {
		if i.gone {
			writes = append(writes, p.start(i, taskDelete)...)
			continue
		}
		r := p.in.revision(i.leader().pod.Labels[p.in.revisionLabel()])
		for _, m := range p.in.Members {
			if r != nil && !i.marked && !i.any(pub.LifecycleStatePreparingDelete) && !i.has(m) {
				missing = append(missing, Creation{Instance: i.Name, Member: m, Revision: r.Name})
			}
		}
	}
	if len(missing) > 0 {
		writes = append(writes, p.create(missing)...)
	}
	return writes
}

// has reports whether a member exists, or still has its name.
func (i *instance) has(m Member) bool {
	return slices.Contains(i.terminating, m.Name) || slices.ContainsFunc(i.members, func(have *member) bool { return have.Member == m })
}

// any reports whether a pod is in a state.
func (i *instance) any(state pub.LifecycleState) bool {
	return slices.ContainsFunc(i.members, func(m *member) bool { return lifecycle.StateOf(m.pod) == state })
}

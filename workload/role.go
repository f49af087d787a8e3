package workload

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
)

// Group is how the pods of a group go together. The zero value suits a leader and its workers: the leader is created
// and updated first, the group leaves traffic as a whole for an update, and the group is recreated as a whole where an
// update is not possible in place and where its leader is gone.
type Group struct {
	// Label and MemberLabel are the labels that name the group and the member of a pod, as those of Groups. Input.Pod sets
	// them, and names the pods after them. Both or none; they require slots. Without them, Build names the pods.
	Label, MemberLabel string
	// Roles order the updates of a group, and bound them. Nil has all pods follow the leader. Where roles are given, a
	// pod follows those of its Role.After alone, and roles that are not listed follow none. The leader follows none.
	Roles []Role
	// Traffic is which pods leave traffic for an update.
	Traffic Traffic
	// Blocked is what is recreated where an update is not possible in place. It must be BlockedGroup where a restart
	// recreates the group, as a pod that is gone restarts that group, and where a preDelete hook holds the pods.
	Blocked Blocked
	// Restart is what happens when a pod fails.
	Restart Restart
}

// Role is how the pods of a template go, in each group.
type Role struct {
	// Name of the role, as in Member.Role.
	Name string
	// After are the roles that come before this one: their pods have been updated, and with TrafficEach are available,
	// before a pod of this role is updated.
	After []string
	// MaxUnavailable is how many pods of the role may be unavailable, in one group, while updates of its pods begin; nil
	// for no bound. It requires TrafficEach. See scale.FailureTolerance for members that vote.
	MaxUnavailable *int32
	// Last reports whether a pod is updated after the others of its role, as the leader that members have elected. It may
	// change from one pass to the next. It requires TrafficEach. Nil for none.
	Last func(*corev1.Pod) bool
}

// Traffic is which pods of a group leave traffic for an update.
type Traffic string

const (
	// TrafficTogether takes all pods of a group out of traffic before the first one changes, and puts all of them back
	// when the last one is done. It is the default, for pods that serve only together.
	TrafficTogether Traffic = ""
	// TrafficEach takes a pod out of traffic for its own change alone, and puts it back when that is done. A pod whose
	// containers do not restart stays in traffic: see inplace.Policy.
	TrafficEach Traffic = "Each"
)

// Blocked is what is recreated where the update of a pod of a group is not possible in place.
type Blocked string

const (
	// BlockedGroup recreates the group. It is the default.
	BlockedGroup Blocked = ""
	// BlockedPod recreates the pod, in its turn; and the group where the pod is the leader and the loss of the leader
	// recreates the group.
	BlockedPod Blocked = "Pod"
)

// order is which members of a group come before which.
type order struct {
	// before are, by rank, the ranks that come before.
	before [][]int
	// roles are, by rank, the settings of the role of the member; the zero value for none.
	roles []Role
}

// orderOf returns the order of the members of each group.
func orderOf(in *Input) order {
	o := order{before: make([][]int, len(in.Members)), roles: make([]Role, len(in.Members))}
	ranks := map[string][]int{}
	for rank, m := range in.Members {
		ranks[m.Role] = append(ranks[m.Role], rank)
		if in.Group.Roles == nil && rank > 0 {
			o.before[rank] = []int{0}
		}
		if k := slices.IndexFunc(in.Group.Roles, func(r Role) bool { return r.Name == m.Role }); k >= 0 {
			o.roles[rank] = in.Group.Roles[k]
		}
	}
	for rank, r := range o.roles {
		for _, name := range r.After {
			o.before[rank] = append(o.before[rank], ranks[name]...)
		}
	}
	return o
}

// at returns the member of a rank; nil where it does not exist.
func (i *instance) at(rank int) *member {
	for _, m := range i.members {
		if int(m.rank) == rank && !m.deleted {
			return m
		}
	}
	return nil
}

// goalOf returns the revision label that a group is at, or on its way to: that of the members that follow none. Where
// these differ, the way leads to the update revision.
func (p *Pass) goalOf(i *instance) string {
	first := p.in.revisionOf(i.leader().pod)
	if p.in.Group.Roles == nil {
		return first
	}
	for _, r := range []*Revision{&p.in.Update, &p.in.Current} {
		for _, m := range i.members {
			if label := p.in.revisionOf(m.pod); len(p.order.before[m.rank]) == 0 && r.matches(label) {
				return label
			}
		}
	}
	return first
}

// isUp reports whether a pod of a group is available, and no write of this pass may have changed that.
func (p *Pass) isUp(m *member) bool {
	if m == nil || m.deleted || p.isBusy(m) && !m.harmless {
		return false
	}
	available, _ := p.in.Scale.Available(m.pod)
	return available
}

// isWhole reports whether all pods of a group are available.
func (p *Pass) isWhole(i *instance) bool {
	isDown := func(m *member) bool { return !p.isUp(m) }
	return len(i.members) >= len(p.in.Members) && !slices.ContainsFunc(i.members, isDown)
}

// isMixed reports whether the pods of a group have several revisions.
func (p *Pass) isMixed(i *instance) bool {
	if len(i.members) == 0 {
		return false
	}
	label := p.in.revisionOf(i.leader().pod)
	return slices.ContainsFunc(i.members, func(m *member) bool { return !revision.Match(p.in.revisionOf(m.pod), label) })
}

// mayDisrupt reports whether an available pod may leave traffic: no bound of its role or the workload is crossed then.
// The plan has allowed the first pod of an update.
func (p *Pass) mayDisrupt(i *instance, m *member, planned bool) bool {
	down := int32(0)
	for rank, other := range p.in.Members {
		if other.Role == p.role(m) && !p.isUp(i.at(rank)) {
			down++
		}
	}
	if role := p.order.roles[m.rank]; role.MaxUnavailable != nil && down >= *role.MaxUnavailable {
		p.note(note.Waiting, NotePodsLimited, i.Name, fmt.Sprintf(
			"waits to be updated: %d pods of role %s are unavailable, and %d may be", down, role.Name, *role.MaxUnavailable))
		return false
	}
	return planned && !p.isMixed(i) || p.mayGo(i)
}

// mayGo reports whether a group may become unavailable. The plan counts a group in mid-update as unavailable, also
// while all its pods are available, so what the plan does with such a group may be too much.
func (p *Pass) mayGo(i *instance) bool {
	if !p.isWanted(i.Name) || !p.isWhole(i) || p.sparesGroup(i) {
		return true
	}
	p.note(note.Waiting, NotePodsLimited, i.Name, "waits until more groups are available")
	return false
}

// isWanted reports whether an instance has a slot, or needs none.
func (p *Pass) isWanted(name string) bool {
	_, isSlot := p.rankOf(name)
	return isSlot || p.in.Scale.Slots == nil
}

// rankOf returns where a name is among the slots and those of the surge.
func (p *Pass) rankOf(name string) (at int, isSlot bool) {
	if p.ranks == nil {
		p.ranks = map[string]int{}
		for k, slot := range slices.Concat(p.in.Scale.Slots, p.in.Scale.SurgeSlots) {
			p.ranks[slot] = k
		}
	}
	at, isSlot = p.ranks[name]
	return at, isSlot
}

// sparesGroup reports whether enough other groups are available for one to become unavailable.
func (p *Pass) sparesGroup(i *instance) bool {
	limits, whole := p.in.Scale.Limits, int32(0)
	for _, other := range p.instances {
		if other != i && !other.gone && p.isWhole(other) && p.isWanted(other.Name) {
			whole++
		}
	}
	return whole >= max(limits.Replicas, int32(len(p.in.Scale.Slots)))-max(limits.MaxUnavailable, 0)
}

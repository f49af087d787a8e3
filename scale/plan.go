package scale

import (
	"math"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// planner makes one plan.
type planner struct {
	in      *Input
	members []*member
	pinned  sets.Set[string]
	plan    Result
}

// Plan returns what brings the instances that exist one step closer to those that are wanted. The error is an
// *InputError.
func Plan(in Input) (Result, error) {
	if err := in.check(); err != nil {
		return Result{}, err
	}
	if in.Slots != nil {
		in.Limits.Replicas = int32(len(in.Slots))
	}
	in.Limits = sane(in.Limits)
	if in.Hooks == nil {
		in.Hooks = &kruise.Lifecycle{}
	}
	p := &planner{in: &in, pinned: sets.New(in.Pinned...)}
	p.observe()
	names, err := p.byName()
	if err != nil {
		return Result{}, err
	}
	if in.Slots == nil {
		p.planCount()
	} else {
		s, err := p.assign(names)
		if err != nil {
			return Result{}, err
		}
		s.planSlots()
	}
	p.conclude()
	return p.plan, nil
}

// sane keeps numbers that no API allows from turning into their opposite where they are added.
func sane(l Limits) Limits {
	l.Replicas = max(l.Replicas, 0)
	l.Partition = min(max(l.Partition, 0), l.Replicas)
	l.MaxUnavailable = max(l.MaxUnavailable, 0)
	l.MaxSurge = min(max(l.MaxSurge, 0), math.MaxInt32-l.Replicas)
	if l.MaxUnavailableScaling != nil {
		l.MaxUnavailableScaling = ptr.To(max(*l.MaxUnavailableScaling, 0))
	}
	return l
}

// observe looks at every pod once.
func (p *planner) observe() {
	all := make([]member, len(p.in.Instances))
	p.members = make([]*member, 0, len(all))
	for i := range p.in.Instances {
		m := &all[i]
		*m = newMember(&p.in.Instances[i], p.in)
		m.pinned = p.pinned.Has(m.Name)
		if m.Terminating && p.in.Slots == nil {
			continue
		}
		p.members = append(p.members, m)
	}
}

// byName returns the members by name.
func (p *planner) byName() (map[string]*member, error) {
	names := make(map[string]*member, len(p.members))
	for _, m := range p.members {
		if names[m.Name] != nil || m.Name == "" {
			return nil, &InputError{"Instances", "must have a name each"}
		}
		names[m.Name] = m
	}
	return names, nil
}

// idle reports whether nothing is planned that changes the number of instances.
func (p *planner) idle() bool {
	return len(p.plan.Restore) == 0 && len(p.plan.Create) == 0 && len(p.plan.Delete) == 0
}

// conclude sets when to look again, and notes what for.
func (p *planner) conclude() {
	unavailable, terminating := 0, 0
	for _, m := range p.members {
		switch {
		case m.Terminating:
			terminating++
		case !m.available && !m.preparingDelete:
			unavailable++
		}
		if m.wait > 0 && (p.plan.RequeueAfter == 0 || m.wait < p.plan.RequeueAfter) {
			p.plan.RequeueAfter = m.wait
		}
	}
	if p.idle() && len(p.plan.Update) == 0 {
		p.noteWaiting(NoteNotAvailable, unavailable, "to become available")
		p.noteWaiting(NoteWaitingForDeletion, terminating, "to be gone")
	}
}

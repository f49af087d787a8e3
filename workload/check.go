package workload

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kruisekit/kruisekit/scale"
)

// check returns a *scale.InputError for what cannot work.
func (in *Input) check() error {
	if err := in.checkRoles(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(in.Targets)) {
		if in.ownRevision(name) == nil {
			return &scale.InputError{
				Field:  fmt.Sprintf("Targets[%s]", name),
				Reason: fmt.Sprintf("must be a revision, and %q is none", in.Targets[name]),
			}
		}
	}
	for _, f := range slices.Concat(in.childRules(), in.groupRules(), in.restartRules()) {
		if f.broken {
			return &scale.InputError{Field: f.field, Reason: f.reason}
		}
	}
	return nil
}

// rule is what a field must be.
type rule struct {
	field, reason string
	broken        bool
}

func (in *Input) childRules() []rule {
	c := in.Children
	if c == nil {
		return nil
	}
	return []rule{
		{"Members", "must be empty with Children", len(in.Members) > 0},
		{"Build", "must be set with Children", in.Build == nil},
		{"Evict", "must be false with Children", in.Evict},
		{"Scale.Hooks", "must be nil with Children", in.Scale.Hooks != nil},
		{"Children", "must have Observe and Patch", c.Observe == nil || c.Patch == nil},
	}
}

func (in *Input) groupRules() []rule {
	g := &in.Group
	labelled, named := g.Label != "", in.Scale.Slots != nil && len(in.Members) > 0
	return []rule{
		{"Group.MemberLabel", "must be set where Group.Label is", labelled != (g.MemberLabel != "")},
		{"Group.MemberLabel", "must not be Group.Label", labelled && g.Label == g.MemberLabel},
		{"Group.Label", "must be empty without Slots and Members", labelled && !named},
		{"Group.MaxUnavailable", "must be nil without TrafficEach", g.MaxUnavailable != nil && g.Traffic != TrafficEach},
		{"Group.Blocked", "must be BlockedGroup with a preDelete hook", g.Blocked != BlockedGroup && in.isHeld()},
		{"Group.DeleteInOrder", "must be false with IgnoreMarks", g.DeleteInOrder && in.IgnoreMarks},
	}
}

func (in *Input) restartRules() []rule {
	r := &in.Group.Restart
	group, slots, members := r.Policy == RestartGroup, in.Scale.Slots != nil, len(in.Members) > 0
	marks := !in.IgnoreMarks || !members
	return []rule{
		{"Group.Blocked", "must be BlockedGroup with RestartGroup", group && in.Group.Blocked != BlockedGroup},
		{"Group.Restart", "must be empty without Slots and Members", r.isSet() && !slots && !members},
		{"Group.Restart.Policy", "must not be RestartGroup without Slots", group && !slots},
		{"Group.Restart.Policy", "must not be RestartGroup with a preDelete hook", group && in.isHeld()},
		{"Group.Restart.Policy", "must not be RestartPod with IgnoreMarks", r.Policy == RestartPod && !marks},
		{"Group.Restart.Failed", "must be nil with a preDelete hook", r.Failed != nil && in.isHeld()},
	}
}

// isHeld reports whether a hook holds pods before their deletion.
func (in *Input) isHeld() bool { return in.Scale.Hooks != nil && in.Scale.Hooks.PreDelete != nil }

// checkRoles returns an error for roles that cannot work.
func (in *Input) checkRoles() error {
	g, each := &in.Group, in.Group.Traffic == TrafficEach
	known := map[string]int{}
	for k, r := range g.Roles {
		path := fmt.Sprintf("Group.Roles[%d]", k)
		if _, twice := known[r.Name]; twice {
			return &scale.InputError{Field: path + ".Name", Reason: fmt.Sprintf("must not be %q twice", r.Name)}
		}
		known[r.Name] = k
		switch {
		case r.MaxUnavailable != nil && !each:
			return &scale.InputError{Field: path + ".MaxUnavailable", Reason: "must be nil without TrafficEach"}
		case r.Last != nil && !each:
			return &scale.InputError{Field: path + ".Last", Reason: "must be nil without TrafficEach"}
		case len(r.After) > 0 && len(in.Members) > 0 && in.Members[0].Role == r.Name:
			return &scale.InputError{Field: path + ".After", Reason: "must be empty for the role of the leader"}
		}
	}
	return checkOrder(g.Roles, known)
}

// checkOrder returns an error for a role that follows an unknown one, or itself.
func checkOrder(roles []Role, known map[string]int) error {
	const open, closed = 1, 2
	state := make([]int8, len(roles))
	var visit func(k int) error
	visit = func(k int) error {
		state[k] = open
		for j, name := range roles[k].After {
			path := fmt.Sprintf("Group.Roles[%d].After[%d]", k, j)
			before, ok := known[name]
			switch {
			case !ok:
				return &scale.InputError{Field: path, Reason: fmt.Sprintf("must be a role, and %q is none", name)}
			case state[before] == open:
				return &scale.InputError{Field: path, Reason: fmt.Sprintf("must not be %q, which follows %q", name, roles[k].Name)}
			case state[before] == closed:
				continue
			}
			if err := visit(before); err != nil {
				return err
			}
		}
		state[k] = closed
		return nil
	}
	for k := range roles {
		if state[k] == 0 {
			if err := visit(k); err != nil {
				return err
			}
		}
	}
	return nil
}

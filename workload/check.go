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

// checkOrder returns an error for a role that follows an unknown one, or itself. A role is clear once all roles that it
// follows are.
func checkOrder(roles []Role, known map[string]int) error {
	for k, r := range roles {
		for j, name := range r.After {
			if _, ok := known[name]; !ok {
				return orderError(k, j, fmt.Sprintf("must be a role, and %q is none", name))
			}
		}
	}
	isClear := map[string]bool{}
	blocks := func(name string) bool { return !isClear[name] }
	for range roles {
		for _, r := range roles {
			isClear[r.Name] = isClear[r.Name] || !slices.ContainsFunc(r.After, blocks)
		}
	}
	for k, r := range roles {
		if j := slices.IndexFunc(r.After, blocks); j >= 0 {
			return orderError(k, j, fmt.Sprintf("must not be %q, which is part of a cycle or follows one", r.After[j]))
		}
	}
	return nil
}

func orderError(role, after int, reason string) error {
	return &scale.InputError{Field: fmt.Sprintf("Group.Roles[%d].After[%d]", role, after), Reason: reason}
}

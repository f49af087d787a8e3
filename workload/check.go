package workload

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kruisekit/kruisekit/scale"
)

// check returns a *scale.InputError for what cannot work.
func (in *Input) check() error {
	rules := in.roleRules()
	for _, name := range slices.Sorted(maps.Keys(in.Targets)) {
		reason := fmt.Sprintf("must be a revision, and %q is none", in.Targets[name])
		rules = append(rules, rule{fmt.Sprintf("Targets[%s]", name), reason, in.ownRevision(name) == nil})
	}
	for _, f := range slices.Concat(rules, in.childRules(), in.groupRules(), in.restartRules()) {
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

// roleRules are those of each role, then those of their order. A role is clear once all roles that it follows are.
func (in *Input) roleRules() (rules []rule) {
	roles, each := in.Group.Roles, in.Group.Traffic == TrafficEach
	known, isClear := map[string]bool{}, map[string]bool{}
	for k, r := range roles {
		path, leads := fmt.Sprintf("Group.Roles[%d]", k), len(in.Members) > 0 && in.Members[0].Role == r.Name
		rules = append(rules,
			rule{path + ".Name", fmt.Sprintf("must not be %q twice", r.Name), known[r.Name]},
			rule{path + ".MaxUnavailable", "must be nil without TrafficEach", r.MaxUnavailable != nil && !each},
			rule{path + ".Last", "must be nil without TrafficEach", r.Last != nil && !each},
			rule{path + ".After", "must be empty for the role of the leader", leads && len(r.After) > 0},
		)
		known[r.Name] = true
	}
	blocks := func(name string) bool { return !isClear[name] }
	for range roles {
		for _, r := range roles {
			isClear[r.Name] = isClear[r.Name] || !slices.ContainsFunc(r.After, blocks)
		}
	}
	var cycles []rule
	for k, r := range roles {
		for j, name := range r.After {
			path := fmt.Sprintf("Group.Roles[%d].After[%d]", k, j)
			rules = append(rules, rule{path, fmt.Sprintf("must be a role, and %q is none", name), !known[name]})
			cycle := fmt.Sprintf("must not be %q, which is part of a cycle or follows one", name)
			cycles = append(cycles, rule{path, cycle, blocks(name)})
		}
	}
	return append(rules, cycles...)
}

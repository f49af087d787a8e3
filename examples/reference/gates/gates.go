// Package gates reads the feature gates of the reference into a value, which is then passed down as plain options.
//
// Two things are decided after the list is read. AllAlpha and AllBeta set what the list does not name. Then some gates
// follow from others, such as all that needs the node daemon from KruiseDaemon; Notes lists these.
package gates

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Gates are on or off, all of them. The zero value has all off; Default is that of the reference.
type Gates struct {
	on    map[Gate]bool
	notes []string
}

const (
	allAlpha Gate = "AllAlpha"
	allBeta  Gate = "AllBeta"
)

// Default has no gate changed.
func Default() Gates {
	g := Gates{on: map[Gate]bool{}}
	for name, f := range table() {
		g.on[name] = f.on
	}
	return g
}

// All returns the names of all gates, sorted.
func All() []Gate { return slices.Sorted(maps.Keys(table())) }

// Parse reads a list such as "A=true,AllBeta=false". An empty one is the default.
func Parse(list string) (Gates, error) {
	named := map[Gate]bool{}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, value, found := strings.Cut(item, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !found {
			return Gates{}, fmt.Errorf("feature gate %q: want name=true or name=false", item)
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return Gates{}, fmt.Errorf("feature gate %s: %q is neither true nor false", name, value)
		}
		if _, known := table()[Gate(name)]; !known && Gate(name) != allAlpha && Gate(name) != allBeta {
			return Gates{}, fmt.Errorf("there is no feature gate %q", name)
		}
		named[Gate(name)] = on
	}
	g := Default()
	for name, f := range table() {
		all := allBeta
		if f.alpha {
			all = allAlpha
		}
		if on, ok := named[all]; ok && !f.named {
			g.on[name] = on
		}
		if on, ok := named[name]; ok {
			g.on[name] = on
		}
	}
	g.derive()
	return g, nil
}

// derive settles the gates that follow from others, in the order of the rules.
func (g *Gates) derive() {
	for _, r := range rules() {
		if !slices.ContainsFunc(r.when, func(one Gate) bool { return g.on[one] == r.is }) {
			continue
		}
		for _, name := range r.then {
			if g.on[name] != r.is {
				g.on[name] = r.is
				g.notes = append(g.notes, fmt.Sprintf("%s=%t because of %s", name, r.is, join(r.when)))
			}
		}
	}
}

// On reports whether a gate is on.
func (g Gates) On(name Gate) bool { return g.on[name] }

// Notes are the gates that follow from others against what was asked for or is the default.
func (g Gates) Notes() []string { return slices.Clone(g.notes) }

// Changed are the gates that are not as by default, by name.
func (g Gates) Changed() []Gate {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g.on)), func(name Gate) bool {
		return g.on[name] == table()[name].on
	})
}

// String lists the changed gates in a form that Parse reads.
func (g Gates) String() string {
	changed := g.Changed()
	all := make([]string, 0, len(changed))
	for _, name := range changed {
		all = append(all, fmt.Sprintf("%s=%t", name, g.on[name]))
	}
	return strings.Join(all, ",")
}

func join(names []Gate) string {
	all := make([]string, 0, len(names))
	for _, n := range names {
		all = append(all, string(n))
	}
	return strings.Join(all, " or ")
}

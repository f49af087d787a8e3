package steady

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/internal/scope"
)

// frame is where parts are contributed: a list of a contribution; with value empty its selections.
type frame struct {
	contribution         int
	before, value, after string
	ignore               bool
}

// key identifies a part: the value of a list, or the selectors of a selection.
type key struct {
	// in is the one frame of State.frames that is equal.
	in *frame
	of string
}

// part is a value of a list, or a selection.
type part struct {
	selection *scope.Selection
	// gone is when the part was first seen to be no longer wanted; zero for one that is wanted.
	gone time.Time
}

// split returns the parts of namespaces, and all frames: those that are known, and further ones.
func split(all []scope.Contribution, known map[frame]*frame) (units map[unit]map[key]part, frames map[frame]*frame) {
	units, frames = map[unit]map[key]part{}, maps.Clone(known)
	if frames == nil {
		frames = map[frame]*frame{}
	}
	one := func(f frame) *frame {
		if frames[f] == nil {
			frames[f] = &f
		}
		return frames[f]
	}
	add := func(namespace string, k key, p part) {
		u := unit{namespace, k.in.ignore}
		if units[u] == nil {
			units[u] = map[key]part{}
		}
		if have := units[u][k].selection; have == nil || p.selection.Object < have.Object {
			units[u][k] = p
		}
	}
	for i, c := range all {
		for j := range c.Selections {
			if s := &c.Selections[j]; s.In != "" {
				add(s.In, key{one(frame{contribution: i, ignore: s.Ignore}), identity(s)}, part{selection: s})
			}
		}
		for _, l := range c.Lists {
			at := one(frame{i, l.Before, l.Value, l.After, l.Ignore})
			for _, value := range l.Of {
				add(scope.NamespaceOf(value), key{at, value}, part{})
			}
		}
	}
	return units, frames
}

// identity is the labels of pods that a selection asks for, in the namespace of its object.
func identity(s *scope.Selection) string {
	if s.Pod == nil {
		return ""
	}
	var b strings.Builder
	add := func(words ...string) {
		b.WriteString(strconv.Itoa(len(words)) + ";")
		for _, w := range words { // with lengths, because a stored selector may have any text
			b.WriteString(strconv.Itoa(len(w)) + ":" + w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Pod.MatchLabels)) {
		add(name, s.Pod.MatchLabels[name])
	}
	b.WriteString("/")
	for _, r := range s.Pod.MatchExpressions {
		add(append([]string{r.Key, string(r.Operator)}, r.Values...)...)
	}
	return b.String()
}

// join returns contributions of the parts of units. The same parts give the same contributions, in any order.
func join(all []scope.Contribution, units map[unit]claim) []scope.Contribution {
	joined := make([]scope.Contribution, 0, len(all)+1)
	for _, c := range all {
		joined = append(joined, scope.Contribution{
			Conditions: c.Conditions,
			Selections: slices.DeleteFunc(slices.Clone(c.Selections), func(s scope.Selection) bool { return s.In != "" }),
		})
	}
	lists := map[frame][]string{}
	for u, c := range units {
		if c.widened {
			at := frame{len(all), "", "request.namespace", "", u.ignore}
			lists[at] = append(lists[at], u.namespace)
			continue
		}
		for k, p := range c.parts {
			if p.selection == nil {
				lists[*k.in] = append(lists[*k.in], k.of)
				continue
			}
			of := &joined[k.in.contribution]
			of.Selections = append(of.Selections, *p.selection)
		}
	}
	for i := range joined {
		slices.SortFunc(joined[i].Selections, func(a, b scope.Selection) int {
			if c := cmp.Compare(a.Object, b.Object); c != 0 {
				return c
			}
			return cmp.Compare(identity(&a), identity(&b))
		})
	}
	for _, at := range slices.SortedFunc(maps.Keys(lists), frame.compare) {
		if at.contribution == len(joined) {
			joined = append(joined, scope.Contribution{})
		}
		slices.Sort(lists[at])
		of := &joined[at.contribution]
		of.Lists = append(of.Lists, scope.List{
			Before: at.before, Value: at.value, After: at.after, Of: lists[at], Ignore: at.ignore,
		})
	}
	return joined
}

func (a frame) compare(b frame) int {
	return cmp.Or(
		cmp.Compare(a.contribution, b.contribution),
		cmp.Compare(a.before, b.before), cmp.Compare(a.value, b.value), cmp.Compare(a.after, b.after),
		compareBool(a.ignore, b.ignore),
	)
}

// compareBool has false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

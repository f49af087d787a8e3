package sidecarsets

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Overlap returns labels that all of the selectors select, if there are any. Nil selects all. The error is of a
// selector that cannot be parsed.
func Overlap(selectors ...*metav1.LabelSelector) (shared map[string]string, found bool, err error) {
	byKey := map[string][]labels.Requirement{}
	for _, s := range selectors {
		if s == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			return nil, false, fmt.Errorf("parse selector: %w", err)
		}
		all, _ := selector.Requirements()
		for _, r := range all {
			byKey[r.Key()] = append(byKey[r.Key()], r)
		}
	}
	shared = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		meets := func(l labels.Set) bool {
			return !slices.ContainsFunc(byKey[key], func(r labels.Requirement) bool { return !r.Matches(l) })
		}
		if meets(nil) {
			continue
		}
		candidates := candidates(byKey[key])
		at := slices.IndexFunc(candidates, func(value string) bool { return meets(labels.Set{key: value}) })
		if at < 0 {
			return nil, false, nil
		}
		shared[key] = candidates[at]
	}
	return shared, true, nil
}

// candidates returns the values that requirements name, sorted, and then one that they do not name.
func candidates(all []labels.Requirement) []string {
	named := sets.New[string]()
	for _, r := range all {
		named.Insert(r.ValuesUnsorted()...)
	}
	i := 0
	for named.Has("any-" + strconv.Itoa(i)) {
		i++
	}
	return append(sets.List(named), "any-"+strconv.Itoa(i))
}

package sidecarsets

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
)

// OverlapLabels returns labels that all of the selectors select, if there are any. The error is of a selector that
// cannot be parsed.
func OverlapLabels(selectors ...*metav1.LabelSelector) (shared map[string]string, found bool, err error) {
	byKey, err := requirements(selectors)
	// After the errors: an invalid selector is an error, whatever the others are.
	if err != nil || slices.Contains(selectors, nil) {
		return nil, false, err
	}
	shared, found = overlap(byKey, func(_, _ string) bool { return true })
	return shared, found, nil
}

// OverlapNamespace returns labels of a namespace that all of the selectors select, if there can be one. The error is of
// a selector that cannot be parsed.
func OverlapNamespace(selectors ...*metav1.LabelSelector) (shared map[string]string, found bool, err error) {
	byKey, err := requirements(selectors)
	if err != nil {
		return nil, false, err
	}
	shared, found = overlap(byKey, func(key, value string) bool { // each namespace has a valid name as a label
		return key != corev1.LabelMetadataName || len(validation.IsDNS1123Label(value)) == 0
	})
	return shared, found, nil
}

// requirements returns those of all selectors, by their keys.
func requirements(selectors []*metav1.LabelSelector) (map[string][]labels.Requirement, error) {
	byKey := map[string][]labels.Requirement{}
	for _, s := range selectors {
		if s == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			return nil, fmt.Errorf("parse selector: %w", err)
		}
		all, _ := selector.Requirements()
		for _, r := range all {
			byKey[r.Key()] = append(byKey[r.Key()], r)
		}
	}
	return byKey, nil
}

// overlap returns labels that meet the requirements. allowed reports whether an object can have a value of a key; no
// value is the empty one, or none at all.
func overlap(byKey map[string][]labels.Requirement, allowed func(key, value string) bool) (map[string]string, bool) {
	shared := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		meets := func(l labels.Set) bool {
			return allowed(key, l[key]) &&
				!slices.ContainsFunc(byKey[key], func(r labels.Requirement) bool { return !r.Matches(l) })
		}
		if meets(nil) {
			continue
		}
		candidates := candidates(byKey[key])
		at := slices.IndexFunc(candidates, func(value string) bool { return meets(labels.Set{key: value}) })
		if at < 0 {
			return nil, false
		}
		shared[key] = candidates[at]
	}
	return shared, true
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

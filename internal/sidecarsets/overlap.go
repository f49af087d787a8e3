package sidecarsets

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// OverlapLabels returns labels that all of the selectors select, if there are any. The error is of a selector that
// cannot be parsed.
func OverlapLabels(selectors ...*metav1.LabelSelector) (shared map[string]string, found bool, err error) {
	all := keys{}
	for _, s := range selectors {
		if err := all.read(s); err != nil {
			return nil, false, err
		}
	}
	// After the errors: an invalid selector is an error, whatever the others are.
	if slices.Contains(selectors, nil) {
		return nil, false, nil
	}
	shared, found = all.solve()
	return shared, found, nil
}

// OverlapNamespace returns labels of a namespace that all of the selectors select, if there can be one. The error is of
// a selector that cannot be parsed.
func OverlapNamespace(selectors ...*metav1.LabelSelector) (shared map[string]string, found bool, err error) {
	all := keys{}
	for _, s := range selectors {
		if err := all.read(s); err != nil {
			return nil, false, err
		}
	}
	all.named()
	shared, found = all.solve()
	return shared, found, nil
}

// keys are the requirements of each label.
type keys map[string]*key

// key is the requirement of one label.
type key struct {
	// present or absent is required. Both is impossible.
	present, absent bool
	// one of these values, if limited.
	limited bool
	in      []string
	// none of these values.
	notIn map[string]bool
}

func (all keys) at(name string) *key {
	k := all[name]
	if k == nil {
		k = &key{notIn: map[string]bool{}}
		all[name] = k
	}
	return k
}

// read adds the requirements of a selector.
func (all keys) read(s *metav1.LabelSelector) error {
	if s == nil {
		return nil
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return fmt.Errorf("parse selector: %w", err)
	}
	for name, value := range s.MatchLabels {
		all.at(name).among([]string{value})
	}
	for _, e := range s.MatchExpressions {
		k := all.at(e.Key)
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			k.among(e.Values)
		case metav1.LabelSelectorOpNotIn:
			for _, value := range e.Values {
				k.notIn[value] = true
			}
		case metav1.LabelSelectorOpExists:
			k.present = true
		case metav1.LabelSelectorOpDoesNotExist:
			k.absent = true
		}
	}
	return nil
}

// named requires the label of the name, which each namespace has, with a valid name.
func (all keys) named() {
	k := all[corev1.LabelMetadataName]
	if k == nil {
		return // any name will do
	}
	k.present = true
	k.in = slices.DeleteFunc(k.in, func(name string) bool { return len(validation.IsDNS1123Label(name)) > 0 })
}

// among restricts the values.
func (k *key) among(values []string) {
	k.present = true
	if !k.limited {
		k.limited, k.in = true, slices.Clone(values)
		return
	}
	k.in = slices.DeleteFunc(k.in, func(value string) bool { return !slices.Contains(values, value) })
}

func (all keys) solve() (map[string]string, bool) {
	shared := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		k := all[name]
		switch {
		case k.present && k.absent:
			return nil, false
		case !k.present: // without the label, all other requirements are met
		default:
			value, ok := k.value()
			if !ok {
				return nil, false
			}
			shared[name] = value
		}
	}
	return shared, true
}

// value returns the first allowed value.
func (k *key) value() (string, bool) {
	if k.limited {
		slices.Sort(k.in)
		for _, value := range k.in {
			if !k.notIn[value] {
				return value, true
			}
		}
		return "", false
	}
	for i := 0; ; i++ {
		if value := "any-" + strconv.Itoa(i); !k.notIn[value] {
			return value, true
		}
	}
}

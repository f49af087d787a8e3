package revision

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// place is a parsed Place.
type place struct {
	role, path string
	// outer are the fields to the value, or to the list or map of values. inner are those from an element to its value.
	outer, inner []string
	// many means that there is a list or a map. name is the field with the role of an element; empty for a map.
	many bool
	name string
}

func parsePlace(of Place) (place, error) {
	at := place{role: of.Role, path: of.Path}
	for field := range strings.SplitSeq(of.Path, ".") {
		name, key, many := strings.Cut(field, "[")
		key, closed := strings.CutSuffix(key, "]")
		if name == "" || many != closed || strings.ContainsAny(name+key, "[]") || many && at.many {
			return at, fmt.Errorf("read path %q: %w", of.Path, errPath)
		}
		if at.many {
			at.inner = append(at.inner, name)
			continue
		}
		at.outer, at.many, at.name = append(at.outer, name), many, key
	}
	if at.name != "" && len(at.inner) == 0 {
		return at, fmt.Errorf("read path %q: %w", of.Path, errPath)
	}
	return at, nil
}

// take moves the templates of the place from decoded data.
func (at *place) take(data map[string]any, into map[string]*corev1.PodTemplateSpec) error {
	return at.visit(data, func(role string, in map[string]any, field string) error {
		value := in[field]
		delete(in, field)
		switch {
		case value == nil && len(at.inner) > 0: // an element may have none
			return nil
		case value == nil:
			return fmt.Errorf("template of role %q: %w", role, errNoRole)
		case into[role] != nil:
			return fmt.Errorf("role %q has another template", role)
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return err
		}
		into[role] = &corev1.PodTemplateSpec{}
		return json.Unmarshal(encoded, into[role])
	})
}

// visit calls do for each value of the place in decoded data, with the object and the field that hold the value.
func (at *place) visit(data map[string]any, do func(role string, in map[string]any, field string) error) error {
	last := len(at.outer) - 1
	parent, err := object(data, at.outer[:last]...)
	if err != nil || parent[at.outer[last]] == nil {
		delete(parent, at.outer[last]) // null is as good as absent
		return err
	}
	if !at.many {
		return do(at.role, parent, at.outer[last])
	}
	elements, err := at.elements(parent[at.outer[last]])
	if err != nil {
		return err
	}
	for _, role := range slices.Sorted(maps.Keys(elements)) {
		path := append([]string{role}, at.inner...)
		in, err := object(elements, path[:len(path)-1]...)
		if err == nil && in != nil && role != SingleRole {
			err = do(role, in, path[len(path)-1])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// elements returns those of a list or a map by role. It sorts a list, so that the order does not count.
func (at *place) elements(of any) (map[string]any, error) {
	if at.name == "" {
		return object(of)
	}
	list, is := of.([]any)
	if !is {
		return nil, errors.New("must be a list")
	}
	all := make(map[string]any, len(list))
	for _, element := range list {
		role, _ := under(element, at.name).(string)
		if role == "" || all[role] != nil {
			return nil, fmt.Errorf("each element needs a %s of its own: %w", at.name, errNoRole)
		}
		all[role] = element
	}
	slices.SortFunc(list, func(a, b any) int {
		x, _ := under(a, at.name).(string)
		y, _ := under(b, at.name).(string)
		return cmp.Compare(x, y)
	})
	return all, nil
}

// object returns the object under fields; nil where there is none.
func object(value any, fields ...string) (map[string]any, error) {
	o, is := value.(map[string]any)
	switch {
	case value == nil:
		return nil, nil
	case !is:
		return nil, errors.New("must be an object")
	case len(fields) == 0:
		return o, nil
	}
	return object(o[fields[0]], fields[1:]...)
}

// put adds the template of a role.
func (at *place) put(root map[string]any, role string, template any) {
	switch {
	case !at.many:
		assign(root, template, at.outer...)
	case at.name == "":
		assign(root, template, slices.Concat(at.outer, []string{role}, at.inner)...)
	default:
		element := map[string]any{at.name: role}
		assign(element, template, at.inner...)
		others, _ := under(root, at.outer...).([]any)
		assign(root, append(others, element), at.outer...)
	}
}

// assign sets the value under fields, and makes the objects that are missing.
func assign(object map[string]any, value any, fields ...string) {
	if len(fields) == 1 {
		object[fields[0]] = value
		return
	}
	inner, is := object[fields[0]].(map[string]any)
	if !is {
		inner = map[string]any{}
		object[fields[0]] = inner
	}
	assign(inner, value, fields[1:]...)
}

// Progress is how far a rollout is, as counted from the instances of a workload: its pods, or its groups of pods.
type Progress struct {
	// Current and Update are the names of the revisions in the status. Current is empty before the first pass.
	Current, Update string
	// Replicas is how many instances the workload wants.
	Replicas int32
	// Existing is how many instances there are, those being deleted left out.
	Existing int32
	// Updated is how many of the existing instances have the update revision.
	Updated int32
}

// Promote returns the current revision after a pass, and reports whether it is another one than before: the update
// revision becomes the current one when there are as many instances as wanted, and all of them have it. Until then,
// instances that the partition keeps are created at the current revision, and a raised partition takes others back to
// it.
//
// Availability does not count: an instance that has the update revision is not created again at an older one.
func Promote(p Progress) (current string, promoted bool) {
	complete := p.Existing == p.Replicas && p.Updated == p.Existing
	if p.Current == p.Update || p.Current != "" && !complete {
		return p.Current, false
	}
	return p.Update, true
}

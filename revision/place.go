package revision

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// places are those of a layout.
type places struct {
	templates []place
	ignored   []place
}

type placeKind int

const (
	single placeKind = iota
	list
	byKey
)

// place is a parsed Place.
type place struct {
	role, path string
	kind       placeKind
	// fields lead to the value; for many values, to their list or map.
	fields []string
	// name is the field with the role of an element, and inner are the fields from an element to its value.
	name  string
	inner []string
}

func (l *Layout) parse() (*places, error) {
	if l == nil {
		l = standard()
	}
	if len(l.Templates) == 0 {
		return nil, fmt.Errorf("read layout: %w", errNoPlace)
	}
	p := &places{}
	for _, t := range l.Templates {
		at, err := parsePlace(t)
		if err != nil {
			return nil, err
		}
		p.templates = append(p.templates, at)
	}
	for _, path := range l.Ignored {
		at, err := parsePlace(Place{Path: path})
		if err != nil {
			return nil, err
		}
		p.ignored = append(p.ignored, at)
	}
	return p, nil
}

func parsePlace(of Place) (place, error) {
	at := place{role: of.Role, path: of.Path}
	for field := range strings.SplitSeq(of.Path, ".") {
		name, key, many := strings.Cut(field, "[")
		key, closed := strings.CutSuffix(key, "]")
		if name == "" || many != closed || strings.ContainsAny(name+key, "[]") || many && at.kind != single {
			return at, fmt.Errorf("read path %q: %w", of.Path, errPath)
		}
		switch {
		case at.kind != single:
			at.inner = append(at.inner, name)
			continue
		case many && key == "":
			at.kind = byKey
		case many:
			at.kind, at.name = list, key
		}
		at.fields = append(at.fields, name)
	}
	if at.kind == list && len(at.inner) == 0 {
		return at, fmt.Errorf("read path %q: %w", of.Path, errPath)
	}
	return at, nil
}

// decode returns the templates at all places.
func (p *places) decode(data []byte) (map[string]*corev1.PodTemplateSpec, error) {
	all := map[string]*corev1.PodTemplateSpec{}
	for _, at := range p.templates {
		if err := at.decode(data, all); err != nil {
			return nil, &DataError{Err: fmt.Errorf("%s: %w", at.path, err)}
		}
	}
	if len(all) == 0 {
		return nil, &DataError{Err: fmt.Errorf("%s is missing", p.templates[0].path)}
	}
	return all, nil
}

func (at *place) decode(data []byte, into map[string]*corev1.PodTemplateSpec) error {
	value, err := field(data, at.fields...)
	if err != nil || isNull(value) {
		return err
	}
	switch at.kind {
	case list:
		var all []json.RawMessage
		if err := json.Unmarshal(value, &all); err != nil {
			return err
		}
		for _, element := range all {
			if err := at.decodeElement(element, into); err != nil {
				return err
			}
		}
		return nil
	case byKey:
		var values map[string]json.RawMessage
		if err := json.Unmarshal(value, &values); err != nil {
			return err
		}
		delete(values, SingleRole)
		for _, role := range slices.Sorted(maps.Keys(values)) {
			if len(at.inner) == 0 && isNull(values[role]) {
				return fmt.Errorf("template of role %q: %w", role, errNoRole)
			}
			if err := at.add(role, values[role], into); err != nil {
				return err
			}
		}
		return nil
	case single:
	}
	return at.add(at.role, value, into)
}

func (at *place) decodeElement(element []byte, into map[string]*corev1.PodTemplateSpec) error {
	name, err := field(element, at.name)
	if err != nil {
		return err
	}
	role := ""
	if !isNull(name) {
		if err := json.Unmarshal(name, &role); err != nil {
			return err
		}
	}
	if role == "" {
		return fmt.Errorf("an element has no %s: %w", at.name, errNoRole)
	}
	return at.add(role, element, into)
}

// add decodes the template of a role in a value. An element may have none.
func (at *place) add(role string, value []byte, into map[string]*corev1.PodTemplateSpec) error {
	encoded, err := field(value, at.inner...)
	if err != nil || isNull(encoded) {
		return err
	}
	if into[role] != nil {
		return fmt.Errorf("role %q has another template", role)
	}
	template := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(encoded, template); err != nil {
		return err
	}
	into[role] = template
	return nil
}

// field returns the value of nested fields; nil where there is none.
func field(value json.RawMessage, fields ...string) (json.RawMessage, error) {
	for _, name := range fields {
		if isNull(value) {
			return nil, nil
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(value, &object); err != nil {
			return nil, err
		}
		value = object[name]
	}
	return value, nil
}

func isNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// put adds the template of a role.
func (at *place) put(root map[string]any, role string, template any) {
	last := len(at.fields) - 1
	parent, name := nested(root, at.fields[:last]), at.fields[last]
	switch at.kind {
	case single:
		parent[name] = template
		return
	case list:
		element := map[string]any{at.name: role}
		others, _ := parent[name].([]any)
		parent[name] = append(others, element)
		nested(element, at.inner[:len(at.inner)-1])[at.inner[len(at.inner)-1]] = template
	case byKey:
		path := append([]string{role}, at.inner...)
		nested(nested(parent, []string{name}), path[:len(path)-1])[path[len(path)-1]] = template
	}
}

// nested returns the object under fields, and makes those that are missing.
func nested(object map[string]any, fields []string) map[string]any {
	for _, name := range fields {
		inner, is := object[name].(map[string]any)
		if !is {
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}
	return object
}

// remove removes what is at the place from decoded data.
func (at *place) remove(root map[string]any) {
	last := len(at.fields) - 1
	parent, is := under(root, at.fields[:last]...).(map[string]any)
	if !is {
		return
	}
	if len(at.inner) == 0 {
		delete(parent, at.fields[last])
		return
	}
	for _, element := range elements(parent[at.fields[last]]) {
		inner := len(at.inner) - 1
		if object, is := under(element, at.inner[:inner]...).(map[string]any); is {
			delete(object, at.inner[inner])
		}
	}
}

func elements(value any) []any {
	switch many := value.(type) {
	case []any:
		return many
	case map[string]any:
		return slices.Collect(maps.Values(many))
	}
	return nil
}

// byRole replaces the list of the place in decoded data by a map, so that its order does not count.
func (at *place) byRole(root map[string]any) {
	last := len(at.fields) - 1
	parent, is := under(root, at.fields[:last]...).(map[string]any)
	if !is || at.kind != list {
		return
	}
	all, roles := elements(parent[at.fields[last]]), map[string]any{}
	for _, element := range all {
		if role, is := under(element, at.name).(string); is {
			roles[role] = element
		}
	}
	if len(roles) == len(all) {
		parent[at.fields[last]] = roles
	}
}

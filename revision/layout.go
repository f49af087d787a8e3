package revision

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Layout is where the data of revisions has its pod templates. Nil is the layout of Encode and EncodeRoles.
//
//	layout := &revision.Layout{Templates: []revision.Place{{Path: "spec.roles[name].template"}}}
//	data, err := layout.Encode(templates) // by role
//	...
//	r := revision.Resolve(revision.Input{Owner: set.Name, Data: data, Have: stored, Same: layout.Same})
//
// A resource with its templates at other places than spec.template needs a Layout only where its revisions are read as
// patches of the resource, or are stored already. Else EncodeRoles stores the templates of any resource.
type Layout struct {
	// Templates are the places of templates.
	Templates []Place
	// Ignored are the paths of fields that make no other revision, such as spec.roles[name].replicas in data that was
	// stored with them. All other fields besides the templates count as they are.
	Ignored []string
}

// Place is where the data has one template, or a template of each element of a list or a map.
type Place struct {
	// Path are the fields from the root of the data, such as spec.leaderWorkerTemplate.workerTemplate. The field of a list
	// has the field with the names of its elements in brackets: spec.roles[name].template. The field of a map has empty
	// brackets: spec.templates[]. A path has brackets once at most.
	Path string
	// Role of the one template; empty for SingleRole. With brackets, the names or the keys are the roles.
	Role string
}

// standard is the layout of Encode and EncodeRoles. Some releases of the reference store the claims of pods too. They
// are no part of what the pods run.
func standard() *Layout {
	return &Layout{
		Templates: []Place{{Path: "spec.template"}, {Path: "spec.templates[]"}},
		Ignored:   []string{"spec.volumeClaimTemplates"},
	}
}

// Encode returns the data of a revision with these templates alone. Each role needs a place. The bytes do not depend on
// the release of the type library, nor on the order of a list: elements are sorted by role.
func (l *Layout) Encode(templates map[string]*corev1.PodTemplateSpec) ([]byte, error) {
	places, _, err := l.places()
	if err != nil {
		return nil, err
	}
	if len(templates) == 0 {
		return nil, fmt.Errorf("encode templates: %w", errNoTemplate)
	}
	root := map[string]any{}
	for _, role := range slices.Sorted(maps.Keys(templates)) {
		i := slices.IndexFunc(places, func(at place) bool {
			return !at.many && at.role == role || at.many && role != SingleRole
		})
		if i < 0 || templates[role] == nil {
			return nil, fmt.Errorf("encode template of role %q: %w", role, errNoRole)
		}
		encoded, err := plain(templates[role])
		if err != nil {
			return nil, fmt.Errorf("encode template of role %q: %w", role, err)
		}
		places[i].put(root, role, encoded)
	}
	data, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("encode templates: %w", err)
	}
	return data, nil
}

// places returns the parsed places of templates, and those of ignored fields.
func (l *Layout) places() (templates, ignored []place, err error) {
	if l == nil {
		l = standard()
	}
	if len(l.Templates) == 0 {
		return nil, nil, fmt.Errorf("read layout: %w", errNoPlace)
	}
	all := slices.Clone(l.Templates)
	for _, path := range l.Ignored {
		all = append(all, Place{Path: path})
	}
	parsed := make([]place, len(all))
	for i, of := range all {
		if parsed[i], err = parsePlace(of); err != nil {
			return nil, nil, err
		}
	}
	return parsed[:len(l.Templates)], parsed[len(l.Templates):], nil
}

// Decode returns the templates in the data of a revision by role.
func (l *Layout) Decode(data []byte) (map[string]*corev1.PodTemplateSpec, error) {
	templates, _, err := l.content(data)
	return templates, err
}

// Same reports whether the data of two revisions means the same: the same templates, as SameRoles compares them, and
// all else equal but for ignored fields and the order of the lists that have templates. Data without a template is the
// same only as equal bytes.
func (l *Layout) Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, restOfX, err := l.content(a)
	if err != nil {
		return false
	}
	y, restOfY, err := l.content(b)
	return err == nil && reflect.DeepEqual(restOfX, restOfY) && SameRoles(x, y)
}

// content returns the templates in the data of a revision by role, and the rest, which counts as it is.
func (l *Layout) content(data []byte) (templates map[string]*corev1.PodTemplateSpec, rest map[string]any, err error) {
	places, ignored, err := l.places()
	if err != nil {
		return nil, nil, err
	}
	if err := utiljson.Unmarshal(data, &rest); err != nil {
		return nil, nil, unreadable(err)
	}
	templates = map[string]*corev1.PodTemplateSpec{}
	for _, at := range places {
		if err := at.take(rest, templates); err != nil {
			return nil, nil, unreadable(fmt.Errorf("%s: %w", at.path, err))
		}
	}
	if len(templates) == 0 {
		return nil, nil, unreadable(fmt.Errorf("%s is missing", places[0].path))
	}
	for _, at := range ignored {
		_ = at.visit(rest, func(_ string, in map[string]any, field string) error { // what has another shape counts
			delete(in, field)
			return nil
		})
	}
	return templates, rest, nil
}

var (
	errNoTemplate = errors.New("spec.template is missing")
	errNoRole     = errors.New("a name and a template are needed")
	errNoPlace    = errors.New("a place of a template is needed")
	errPath       = errors.New("must be fields separated by dots, one of them with [name] for a list or [] for a map")
)

// unreadable returns the error of data without a template that can be read.
func unreadable(err error) error { return fmt.Errorf("read revision data: %w", err) }

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
		into[role], err = decodeTemplate(encoded)
		return err
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
	list, ok := of.([]any)
	if !ok {
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
	o, ok := value.(map[string]any)
	switch {
	case value == nil:
		return nil, nil
	case !ok:
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
	inner, ok := object[fields[0]].(map[string]any)
	if !ok {
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

package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

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
	// stored with them. All other fields beside the templates count as they are.
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
	c, err := l.content(data)
	if err != nil {
		return nil, err
	}
	return c.templates, nil
}

// Same reports whether the data of two revisions means the same: the same templates, as SameRoles compares them, and
// all else equal but for ignored fields and the order of the lists that have templates. Data without a template is the
// same only as equal bytes.
func (l *Layout) Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	ca, err := l.content(a)
	if err != nil {
		return false
	}
	cb, err := l.content(b)
	return err == nil && ca.same(cb)
}

// content is what the data of a revision holds.
type content struct {
	templates map[string]*corev1.PodTemplateSpec
	// rest is all that is not a template of a role. It counts as it is.
	rest map[string]any
}

func (l *Layout) content(data []byte) (*content, error) {
	places, ignored, err := l.places()
	if err != nil {
		return nil, err
	}
	c := &content{templates: map[string]*corev1.PodTemplateSpec{}}
	if err := utiljson.Unmarshal(data, &c.rest); err != nil {
		return nil, unreadable(err)
	}
	for _, at := range places {
		if err := at.take(c.rest, c.templates); err != nil {
			return nil, unreadable(fmt.Errorf("%s: %w", at.path, err))
		}
	}
	if len(c.templates) == 0 {
		return nil, unreadable(fmt.Errorf("%s is missing", places[0].path))
	}
	for _, at := range ignored {
		_ = at.visit(c.rest, func(_ string, in map[string]any, field string) error { // what has another shape counts
			delete(in, field)
			return nil
		})
	}
	return c, nil
}

func (c *content) same(other *content) bool {
	return reflect.DeepEqual(c.rest, other.rest) && SameRoles(c.templates, other.templates)
}

var (
	errNoTemplate = errors.New("spec.template is missing")
	errNoRole     = errors.New("a name and a template are needed")
	errNoPlace    = errors.New("a place of a template is needed")
	errPath       = errors.New("must be fields separated by dots, one of them with [name] for a list or [] for a map")
)

// unreadable returns the error of data without a template that can be read.
func unreadable(err error) error { return fmt.Errorf("read revision data: %w", err) }

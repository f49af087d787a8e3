package kinds

import (
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/write"
)

// content is an object as it was sent, with the parts that no schema describes.
type content struct {
	object map[string]any
	// template and claims are the paths of the templates.
	template, claims []string
}

func (r *Row[T]) content(raw []byte) (content, error) {
	object, err := review.Decode(raw)
	c := content{object: object}
	c.template, c.claims = r.paths(object)
	return c, err
}

// lookup returns the value at a path; nil where there is none.
func (c content) lookup(path []string) any {
	value := any(c.object)
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// podTemplate is nil where there is none.
func (c content) podTemplate() map[string]any {
	if len(c.template) == 0 {
		return nil
	}
	template, _ := c.lookup(c.template).(map[string]any)
	return template
}

func (c content) claimTemplates() []any {
	if len(c.claims) == 0 {
		return nil
	}
	claims, _ := c.lookup(c.claims).([]any)
	return claims
}

// claimNames has an element for each claim, if need be an empty one.
func (c content) claimNames() []string {
	claims := c.claimTemplates()
	names := make([]string, 0, len(claims))
	for _, claim := range claims {
		object, _ := claim.(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		names = append(names, name)
	}
	return names
}

// withoutTemplates is the object without its templates, which are most of it.
func (c content) withoutTemplates() map[string]any {
	object := c.object
	for _, path := range [][]string{c.template, c.claims} {
		object = without(object, path)
	}
	return object
}

// without returns a copy without the value at a path.
func without(object map[string]any, path []string) map[string]any {
	if len(path) == 0 || object == nil {
		return object
	}
	object = maps.Clone(object)
	if len(path) == 1 {
		delete(object, path[0])
		return object
	}
	if below, ok := object[path[0]].(map[string]any); ok {
		object[path[0]] = without(below, path[1:])
	}
	return object
}

func pathOf(keys []string) *field.Path {
	if len(keys) == 0 {
		return nil
	}
	return field.NewPath(keys[0], keys[1:]...)
}

func pointer(keys []string) string { return write.Pointer(keys...) }

// stored is the pod template of the stored object; nil where nothing is stored, or nothing that can be read.
func (r *Row[T]) stored(req admission.Request) map[string]any {
	if req.Operation != admissionv1.Update {
		return nil
	}
	c, err := r.content(req.OldObject.Raw)
	if err != nil {
		return nil
	}
	return c.podTemplate()
}

// foundBefore leaves out faults that were found already.
func foundBefore(faults, found field.ErrorList) field.ErrorList {
	type fault struct {
		field string
		of    field.ErrorType
	}
	known := map[fault]bool{}
	for _, f := range found {
		known[fault{f.Field, f.Type}] = true
	}
	return slices.DeleteFunc(faults, func(f *field.Error) bool { return known[fault{f.Field, f.Type}] })
}

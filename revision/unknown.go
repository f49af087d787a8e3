package revision

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// UnknownFieldsKey is the annotation in which a decoded template, and a pod that is about to be created, keep the
// fields that the Go types of this build lack: those of a newer Kubernetes. The value is JSON with the fields at their
// paths. The annotation exists in memory alone. Encode stores the fields at their paths, and package driver sends them
// there.
const UnknownFieldsKey = "kruisekit.dev/unknown-fields"

// storedTemplate is a template as revisions have it.
type storedTemplate struct {
	corev1.PodTemplateSpec `json:",inline"`
	Patch                  string `json:"$patch,omitempty"`
}

// decodeTemplate returns the template of JSON, which keeps its unknown fields.
func decodeTemplate(encoded []byte) (*corev1.PodTemplateSpec, error) {
	var stored storedTemplate
	var values any
	unknown, err := kjson.UnmarshalStrict(encoded, &stored, kjson.DisallowUnknownFields)
	if err == nil && len(unknown) > 0 {
		err = kjson.UnmarshalCaseSensitivePreserveInts(encoded, &values)
	}
	if err != nil {
		return nil, err
	}
	return &stored.PodTemplateSpec, KeepUnknownFields(&stored.PodTemplateSpec, values)
}

// KeepUnknownFields keeps the unknown fields of JSON values in the templates of an object that was decoded from these
// values. The object is a pointer to a template, or to a struct that has templates at any depth, outside of lists.
// Decode needs no call of it.
func KeepUnknownFields(object, values any) error {
	for _, t := range templatesIn(reflect.ValueOf(object), values) {
		text, err := UnknownFields(t.values, storedTemplate{})
		if err != nil {
			return err
		}
		if delete(t.meta.Annotations, UnknownFieldsKey); text != "" { // users cannot set it
			metav1.SetMetaDataAnnotation(t.meta, UnknownFieldsKey, text)
		}
	}
	return nil
}

// UnknownFields returns the fields of JSON values that the type of an object lacks, as JSON with the fields at their
// paths; empty for none. The elements of a list with a merge key have the key.
func UnknownFields(values, object any) (string, error) {
	unknown := unknownIn(values, reflect.TypeOf(object), "")
	if unknown == nil {
		return "", nil
	}
	text, err := json.Marshal(unknown)
	if err != nil {
		return "", fmt.Errorf("encode unknown fields: %w", err)
	}
	return string(text), nil
}

// AddUnknownFields adds what UnknownFields returned to the JSON values of an object, also where the types have the
// fields by now. Text that is no JSON adds nothing.
func AddUnknownFields(values map[string]any, text string, object any) {
	adder{known: true}.addText(values, text, reflect.TypeOf(object))
}

// Complete returns revisions with the fields that their annotation UnknownFieldsKey has in their data: those that were
// lost when they were stored, and recorded later. Each template is at spec.template.
func Complete(revisions []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	all := slices.Clone(revisions)
	for i, rev := range all {
		if text := rev.Annotations[UnknownFieldsKey]; text != "" {
			all[i] = Completed(rev, text)
		}
	}
	return all
}

// Completed returns a revision with unknown fields in its data; the same revision where its data cannot be read.
func Completed(rev *appsv1.ControllerRevision, unknown string) *appsv1.ControllerRevision {
	values := map[string]any{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(rev.Data.Raw, &values)
	template, ok := under(values, "spec", "template").(map[string]any)
	if err != nil || !ok {
		return rev
	}
	AddUnknownFields(template, unknown, storedTemplate{})
	data, err := json.Marshal(values)
	if err != nil {
		return rev
	}
	full := *rev
	full.Data.Raw = data
	return &full
}

// HasUnknownFields reports whether a pod, a template, or a template of an object keeps unknown fields.
func HasUnknownFields(object any) bool {
	return slices.ContainsFunc(templatesIn(reflect.ValueOf(object), nil), func(t templated) bool {
		return t.meta.Annotations[UnknownFieldsKey] != ""
	})
}

// WithUnknownFields returns the JSON values of a pod, a template, or an object with templates, with the unknown fields
// that they keep at their paths.
func WithUnknownFields(object any) (map[string]any, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	values := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, &values); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	for _, t := range templatesIn(reflect.ValueOf(object), values) {
		fields, _ := t.values.(map[string]any)
		putBack(fields)
	}
	return values, nil
}

// putBack moves the unknown fields of a pod or a template from the annotation to their paths.
func putBack(values map[string]any) {
	metadata, _ := values["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if kept, ok := annotations[UnknownFieldsKey].(string); ok {
		if delete(annotations, UnknownFieldsKey); len(annotations) == 0 {
			delete(metadata, "annotations")
		}
		adder{}.addText(values, kept, reflect.TypeFor[corev1.PodTemplateSpec]())
	}
}

// templated is a template or a pod, with its JSON values; nil where there are none.
type templated struct {
	meta   *metav1.ObjectMeta
	values any
}

// templatesIn returns the templates and pods in an object that has JSON values.
func templatesIn(object reflect.Value, values any) []templated {
	for object.Kind() == reflect.Pointer {
		object = object.Elem()
	}
	if !object.CanAddr() || !hasFields(object.Type()) {
		return nil
	}
	switch t := object.Addr().Interface().(type) {
	case *corev1.PodTemplateSpec:
		return []templated{{&t.ObjectMeta, values}}
	case *corev1.Pod: // without its status, and what tells it from other kinds
		pod := map[string]any{"metadata": under(values, "metadata"), "spec": under(values, "spec")}
		return []templated{{&t.ObjectMeta, pod}}
	}
	var all []templated
	for i := range object.NumField() {
		f := object.Type().Field(i)
		inner, name := values, nameOf(f)
		if name == "metadata" || name == "status" || name == "" && !f.Anonymous {
			continue
		}
		if name != "" {
			inner = under(values, name)
		}
		all = append(all, templatesIn(object.Field(i), inner)...)
	}
	return all
}

// unknownIn returns the part of JSON values for which a type has no fields; nil for none. A list with a merge key has
// the elements with unknown fields, and their keys; another list has all elements.
func unknownIn(values any, t reflect.Type, mergeKey string) any {
	t = dereferenced(t)
	list, ok := values.([]any)
	if ok && t.Kind() == reflect.Slice {
		return unknownInList(list, t.Elem(), mergeKey)
	}
	fields, ok := values.(map[string]any)
	if !ok || !hasFields(t) {
		return nil
	}
	unknown := map[string]any{}
	for name, inner := range fields {
		if f, known := fieldOf(t, name); known {
			inner = unknownIn(inner, f.Type, f.Tag.Get("patchMergeKey"))
		}
		if inner != nil {
			unknown[name] = inner
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return unknown
}

func unknownInList(values []any, t reflect.Type, mergeKey string) any {
	list, found := make([]any, 0, len(values)), false
	keys := keysOf(values, mergeKey)
	for _, element := range values {
		unknown, ok := unknownIn(element, t, "").(map[string]any)
		switch found = found || ok; {
		case ok && keys != nil:
			unknown[mergeKey] = under(element, mergeKey)
		case !ok && keys == nil:
			unknown = map[string]any{}
		case !ok:
			continue
		}
		list = append(list, unknown)
	}
	if !found {
		return nil
	}
	if keys != nil { // the order of the elements does not count
		slices.SortFunc(list, func(a, b any) int {
			return strings.Compare(fmt.Sprint(under(a, mergeKey)), fmt.Sprint(under(b, mergeKey)))
		})
	}
	return list
}

// keysOf returns the indexes of a list by the merge key of its elements; nil where these have none, or have one twice,
// as two ports of one number have: such a list goes by position.
func keysOf(list []any, mergeKey string) map[string]int {
	if mergeKey == "" {
		return nil
	}
	keys := make(map[string]int, len(list))
	for i, element := range list {
		key := under(element, mergeKey)
		text := fmt.Sprint(key) // a number has several types
		if _, twice := keys[text]; twice || key == nil {
			return nil
		}
		keys[text] = i
	}
	return keys
}

// adder adds unknown fields to JSON values of a type. With known, it also adds fields that the type has.
type adder struct{ known bool }

func (a adder) addText(values map[string]any, text string, t reflect.Type) {
	var unknown any
	if kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &unknown) == nil {
		a.add(values, unknown, t, "")
	}
}

func (a adder) add(values, unknown any, t reflect.Type, mergeKey string) {
	t = dereferenced(t)
	switch u := unknown.(type) {
	case map[string]any:
		into, ok := values.(map[string]any)
		if !ok || !hasFields(t) {
			return
		}
		for name, inner := range u {
			f, known := fieldOf(t, name)
			if _, exists := into[name]; !exists && (!known || a.known) {
				into[name] = inner
			} else if known {
				a.add(into[name], inner, f.Type, f.Tag.Get("patchMergeKey"))
			}
		}
	case []any:
		if list, ok := values.([]any); ok && t.Kind() == reflect.Slice {
			a.addToList(list, u, t.Elem(), mergeKey)
		}
	}
}

func (a adder) addToList(list, unknown []any, t reflect.Type, mergeKey string) {
	keys := keysOf(unknown, mergeKey)
	for i, element := range list {
		if keys != nil {
			key := fmt.Sprint(under(element, mergeKey))
			at, found := keys[key]
			if delete(keys, key); !found { // the first of a key has the fields
				continue
			}
			i = at
		}
		if i < len(unknown) {
			a.add(element, unknown[i], t, "")
		}
	}
}

func dereferenced(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// hasFields reports whether the JSON of a type has the fields of a struct. Quantities and times have other forms.
func hasFields(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// fieldOf returns the field of a struct by its name in JSON.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if nameOf(f) == name {
			return f, true
		}
		if nameOf(f) == "" && f.Anonymous && hasFields(f.Type) {
			if inner, ok := fieldOf(f.Type, name); ok {
				return inner, true
			}
		}
	}
	return reflect.StructField{}, false
}

// nameOf returns the name of a field in JSON; empty for a field without JSON, and for an embedded struct whose fields
// are those of the struct around it.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimPrefix(name, "-")
}

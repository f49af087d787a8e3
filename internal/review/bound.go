package review

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// What a template may have at most. A decoded value takes up to 400 bytes of memory, and each replica decodes an object
// several times at once.
const (
	MaxTemplateBytes  = 512 << 10
	MaxTemplateValues = 20_000
	// maxTopologyValues is for the topology of a UnitedDeployment, which has up to 512 subsets with a patch each.
	maxTopologyValues = 40_000
)

// Oversized rejects an object of which a field of the spec has more than a template may have; nil where none has, and
// where the field of the stored object had no less. It decodes no field. An object that is no JSON is for others to
// reject.
func Oversized(req admission.Request, fields ...string) *admission.Response {
	if !Concerns(req) || len(req.Object.Raw) <= MaxTemplateValues {
		return nil // a value takes a byte
	}
	now, before := sizesOf(req.Object.Raw, fields), map[string]size(nil)
	var faults field.ErrorList
	for _, name := range fields {
		is := now[name]
		if !is.over(name) {
			continue
		}
		if before == nil && req.Operation == admissionv1.Update {
			before = sizesOf(req.OldObject.Raw, fields)
		}
		if was := before[name]; !was.over(name) || is.bytes > was.bytes || is.values > was.values {
			faults = append(faults, is.fault(name))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	answer := Invalid(schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}, req.Name, faults)
	return &answer
}

// size is what a field has, in JSON.
type size struct{ bytes, values int }

func (s size) over(name string) bool { return s.bytes > MaxTemplateBytes || s.values > valuesOf(name) }

// valuesOf returns how many values a field may have.
func valuesOf(name string) int {
	if name == "topology" {
		return maxTopologyValues
	}
	return MaxTemplateValues
}

func (s size) fault(name string) *field.Error {
	text := fmt.Sprintf(
		"has %d bytes and %d values of JSON, and may have %d and %d: move lists and variables into a ConfigMap",
		s.bytes, s.values, MaxTemplateBytes, valuesOf(name))
	return &field.Error{
		Type: field.ErrorTypeTooLong, Field: field.NewPath("spec", name).String(),
		BadValue: field.OmitValueType{}, Detail: text,
	}
}

// sizesOf returns the sizes of fields of a spec.
func sizesOf(raw []byte, fields []string) map[string]size {
	var object struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if Unmarshal(raw, &object) != nil {
		return nil
	}
	sizes := make(map[string]size, len(fields))
	for _, name := range fields {
		sizes[name] = size{bytes: len(object.Spec[name]), values: valuesIn(object.Spec[name])}
	}
	return sizes
}

// valuesIn counts the values of JSON text: those of objects, lists, and what is in them.
func valuesIn(text []byte) int {
	n, quoted, opened := 1, false, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
			continue
		case c == '"':
			quoted = !quoted
		case quoted, c == ' ', c == '\t', c == '\n', c == '\r':
			continue
		case c == ',':
			n++
		}
		// The first value of an object or of a list has no comma before it.
		if opened && text[i] != '}' && text[i] != ']' {
			n++
		}
		opened = !quoted && (text[i] == '{' || text[i] == '[')
	}
	return n
}

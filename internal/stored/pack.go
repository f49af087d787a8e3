package stored

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Pack replaces what an untyped object has besides its metadata by its text, for a cache. The maps of a decoded
// template take up to twenty times the bytes of its text. The functions of this package read both shapes; Field, Value
// and Content read what none of them decodes.
//
// The text is a json.Number: decoders make none of it, copies of untyped objects have it, and encoders reject one that
// is no number, so that no packed object is stored by mistake. Pack does not change what is packed.
func Pack(raw *unstructured.Unstructured) {
	for key, value := range raw.Object {
		switch value.(type) {
		case map[string]any, []any:
			if key == "metadata" {
				continue
			}
			if text, err := json.Marshal(value); err == nil { // nothing that was decoded from JSON has an error
				raw.Object[key] = json.Number(text)
			}
		}
	}
}

// apart returns the fields of an object that are not packed, and the texts of the others; nil where nothing is packed.
func apart(raw *unstructured.Unstructured) (rest map[string]any, texts map[string]json.Number) {
	rest = raw.Object
	for key, value := range raw.Object {
		text, packed := value.(json.Number)
		if !packed {
			continue
		}
		if texts == nil {
			rest, texts = maps.Clone(raw.Object), map[string]json.Number{}
		}
		delete(rest, key)
		texts[key] = text
	}
	return rest, texts
}

// Content returns the fields of an object, of which none is packed. They may be those of the object, and are only read.
func Content(raw *unstructured.Unstructured) (map[string]any, error) {
	content, texts := apart(raw)
	for key, text := range texts {
		var value any
		if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", key, err)
		}
		content[key] = value
	}
	return content, nil
}

// Field returns a field of an object, packed or not; false where it is missing. The value may be that of the object,
// and is only read. An error is something on the way that has no fields.
func Field(raw *unstructured.Unstructured, path ...string) (any, bool, error) {
	if len(path) == 0 {
		return nil, false, nil
	}
	text, packed := raw.Object[path[0]].(json.Number)
	if !packed {
		return unstructured.NestedFieldNoCopy(raw.Object, path...)
	}
	at := json.RawMessage(text)
	for _, key := range path[1:] {
		var fields map[string]json.RawMessage // of which the others stay text
		if err := utiljson.Unmarshal(at, &fields); err != nil {
			return nil, false, fmt.Errorf("read %s: %w", key, err)
		}
		var found bool
		if at, found = fields[key]; !found {
			return nil, false, nil
		}
	}
	var value any
	if err := utiljson.Unmarshal(at, &value); err != nil {
		return nil, false, fmt.Errorf("read %s: %w", path[len(path)-1], err)
	}
	return value, true, nil
}

// Value is Field of a field that has a type; a value of another type is an error.
func Value[T any](raw *unstructured.Unstructured, path ...string) (T, bool, error) {
	var none T
	field, found, err := Field(raw, path...)
	if !found || err != nil {
		return none, false, err
	}
	value, ok := field.(T)
	if !ok {
		return none, false, fmt.Errorf("read %s: %T is no %T", path[len(path)-1], field, none)
	}
	return value, true, nil
}

// decode makes a typed object of an untyped one, whose templates keep the fields that their Go types lack. Of what is
// packed no maps are made on the way, but where something cannot be decoded or has such fields.
func decode[T any](raw *unstructured.Unstructured) (*T, error) {
	rest, texts := apart(raw)
	object, unknown := new(T), texts == nil
	if texts != nil {
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(rest, object)
		for key, text := range texts {
			if err == nil {
				var fields []error
				fields, err = kjson.UnmarshalStrict(fmt.Appendf(nil, "{%q:%s}", key, text), object, kjson.DisallowUnknownFields)
				unknown = unknown || len(fields) > 0
			}
		}
		if err == nil && !unknown {
			return object, keepUnknown(object, nil)
		}
	}
	content, err := Content(raw)
	if err != nil {
		return nil, err
	}
	if object, err = convert[T](content); err != nil {
		return nil, err
	}
	return object, keepUnknown(object, content)
}

// keepUnknown keeps the fields of content that the types lack, and nothing that users have written in their place.
func keepUnknown(object any, content map[string]any) error {
	if set, ok := object.(*v1beta1.SidecarSet); ok {
		return sidecar.KeepUnknownFields(set, content["spec"])
	}
	return revision.KeepUnknownFields(object, content)
}

// convert makes a typed object of content. The converter would cut off integers that a field of 32 bits does not hold,
// and API servers before 1.36 store such: a decoder of JSON rejects them.
func convert[T any](content map[string]any) (*T, error) {
	object := new(T)
	if !wide(content) {
		return object, runtime.DefaultUnstructuredConverter.FromUnstructured(content, object)
	}
	text, err := json.Marshal(content)
	if err == nil {
		err = utiljson.Unmarshal(text, object)
	}
	return object, err
}

// wide reports whether a value has an integer of more than 32 bits.
func wide(value any) bool {
	switch v := value.(type) {
	case int64:
		return v < math.MinInt32 || v > math.MaxInt32
	case []any:
		return slices.ContainsFunc(v, wide)
	case map[string]any:
		for _, field := range v {
			if wide(field) {
				return true
			}
		}
	}
	return false
}

package write

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Op is one operation of a JSON patch, RFC 6902.
type Op struct {
	// Op is the verb.
	Op string `json:"op"`
	// Path is a JSON pointer.
	Path string `json:"path"`
	// Value is the operand. A removal has none.
	Value any `json:"value,omitempty"`
}

// Add returns the operation that sets the key of an object, or inserts an element of a list before the one at the path.
func Add(path string, value any) Op { return Op{Op: "add", Path: path, Value: operand(value)} }

// Replace returns the operation that replaces the value at the path.
func Replace(path string, value any) Op { return Op{Op: "replace", Path: path, Value: operand(value)} }

// Remove returns the operation that removes the value at the path. Where there is none the patch fails.
func Remove(path string) Op { return Op{Op: "remove", Path: path} }

// Test returns the operation that fails the patch where the path has another value. Nil is the value of an absent key.
func Test(path string, value any) Op { return Op{Op: "test", Path: path, Value: operand(value)} }

// operand makes a nil value explicit: without it the patch would have no operand at all.
func operand(value any) any {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

// Escape returns a key as one part of a path.
func Escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Pointer returns the path of nested keys.
func Pointer(keys ...string) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteByte('/')
		b.WriteString(Escape(key))
	}
	return b.String()
}

// Encode returns the bytes of a JSON patch.
func Encode(ops []Op) ([]byte, error) {
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return data, nil
}

// Ops is a JSON patch as a body.
type Ops []Op

// Data returns the bytes.
func (o Ops) Data() ([]byte, error) { return Encode(o) }

// JSON returns a write that patches an object with operations.
func JSON(object Object, subresource string, ops ...Op) *Write {
	return &Write{Verb: Patch, Object: object, Subresource: subresource, Type: types.JSONPatchType, Body: Ops(ops)}
}

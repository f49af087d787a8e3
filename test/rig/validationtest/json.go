// Package validationtest has what the tests of the rules of all kinds need: objects of JSON, and the laws of the rules.
package validationtest

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Decode reads an object of JSON.
func Decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// Patched decodes an object of JSON that is changed by a merge patch.
func Patched(t testing.TB, object, patch string, into any) {
	t.Helper()
	have, change := map[string]any{}, map[string]any{}
	Decode(t, object, &have)
	if patch != "" {
		Decode(t, patch, &change)
	}
	merge(have, change)
	data, err := json.Marshal(have)
	if err != nil {
		t.Fatal(err)
	}
	Decode(t, string(data), into)
}

func merge(object, patch map[string]any) {
	for key, value := range patch {
		below, isObject := value.(map[string]any)
		have, wasObject := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isObject && wasObject:
			merge(have, below)
		default:
			object[key] = value
		}
	}
}

// Encode returns an object as JSON.
func Encode(t testing.TB, object any) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Places returns fields and types of faults, without their texts.
func Places(list field.ErrorList) []string {
	var all []string
	for _, f := range list {
		all = append(all, f.Field+": "+f.Type.String())
	}
	return all
}

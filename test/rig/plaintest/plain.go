// Package plaintest has what webhooks are given and what they answer in a plain form, to write and to compare in tests.
package plaintest

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Decode reads an object of JSON.
func Decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// Encode is the same back.
func Encode(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Merge applies a merge patch.
func Merge(object, patch map[string]any) {
	for key, value := range patch {
		below, isObject := value.(map[string]any)
		have, wasObject := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isObject && wasObject:
			Merge(have, below)
		default:
			object[key] = value
		}
	}
}

// Patched returns an object of JSON that a merge patch has changed. An empty patch changes nothing.
func Patched(t testing.TB, plain, patch string) string {
	t.Helper()
	object, change := map[string]any{}, map[string]any{}
	Decode(t, plain, &object)
	if patch != "" {
		Decode(t, patch, &change)
	}
	Merge(object, change)
	return Encode(t, object)
}

// Code is that of a rejection; 0 where the answer admits.
func Code(r admission.Response) int32 {
	if r.Allowed {
		return 0
	}
	return r.Result.Code
}

// Paths are those of the causes of an answer.
func Paths(r admission.Response) []string {
	if r.Result == nil || r.Result.Details == nil {
		return nil
	}
	var all []string
	for _, c := range r.Result.Details.Causes {
		all = append(all, c.Field)
	}
	return all
}

// Causes are those of an answer without their words.
func Causes(r admission.Response) []string {
	if r.Result == nil || r.Result.Details == nil {
		return nil
	}
	var all []string
	for _, c := range r.Result.Details.Causes {
		all = append(all, c.Field+": "+string(c.Type))
	}
	return all
}

// Faults are faults without their words.
func Faults(list field.ErrorList) []string {
	var all []string
	for _, f := range list {
		all = append(all, f.Field+": "+f.Type.String())
	}
	return all
}

package cloneset_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
)

// spec is that of a CloneSet of one container, in either version, changed by a merge patch.
func spec(t testing.TB, patch string) string {
	t.Helper()
	spec, change := map[string]any{}, map[string]any{}
	const plain = `{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},
		"spec":{"containers":[{"name":"main","image":"app:1"}]}}}`
	if err := json.Unmarshal([]byte(plain), &spec); err != nil {
		t.Fatal(err)
	}
	if patch != "" {
		if err := json.Unmarshal([]byte(patch), &change); err != nil {
			t.Fatalf("%v: %s", err, patch)
		}
	}
	merge(spec, change)
	return encode(t, spec)
}

func encode(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// merge applies a merge patch.
func merge(obj, patch map[string]any) {
	for key, value := range patch {
		below, isObject := value.(map[string]any)
		have, wasObject := obj[key].(map[string]any)
		switch {
		case value == nil:
			delete(obj, key)
		case isObject && wasObject:
			merge(have, below)
		default:
			obj[key] = value
		}
	}
}

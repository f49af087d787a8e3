//go:build envtest

package compat

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// testInvalid spoils the manifests, and expects that the server refuses them and names the field.
func testInvalid(t *testing.T, s *server) {
	byKind := map[schema.GroupVersionKind][]manifest{}
	for _, m := range manifests(t) {
		gvk := gvkOf(fields(t, m.raw))
		byKind[gvk] = append(byKind[gvk], m)
	}
	for gvk, rows := range s.schemas {
		t.Run(gvk.Version+"/"+gvk.Kind, func(t *testing.T) {
			t.Run("Schema", func(t *testing.T) { testSchema(t, s, gvk, rows, byKind[gvk]) })
			t.Run("ByHand", func(t *testing.T) { testByHand(t, s, gvk, byKind[gvk]) })
		})
	}
}

// spoiled is a manifest with one fault, and what the refusal must say.
type spoiled struct {
	what   string
	change func(obj map[string]any, at []any)
	want   func(path string) fault
}

// fault is a cause in a refusal.
type fault struct {
	kind  metav1.CauseType
	field string
}

// unknown is the fault of strict decoding, which has no field.
const unknown metav1.CauseType = "unknown field"

// testSchema spoils each path in all ways that its schema forbids, in the first manifest that sets it.
func testSchema(t *testing.T, s *server, gvk schema.GroupVersionKind, rows map[string]field, all []manifest) {
	created := map[string]*unstructured.Unstructured{}
	for _, path := range slices.Sorted(maps.Keys(rows)) {
		if !isContent(path) {
			continue
		}
		var m manifest
		var at []any
		for _, m = range all {
			if found, ok := locate(fields(t, m.raw), path); ok {
				at = found
				break
			}
		}
		for _, fault := range faults(rows[path]) {
			obj := fields(t, m.raw)
			fault.change(obj, at)
			var err error
			if at[0] == "spec" {
				err = s.tryCreate(t, obj)
			} else {
				if created[m.file+nameOf(obj)] == nil {
					created[m.file+nameOf(obj)] = s.writeSpec(t, m)
				}
				err = s.tryStatus(t, created[m.file+nameOf(obj)], obj)
			}
			expect(t, fault.what, err, fault.want(name(at)))
		}
	}
}

// faults are the ways to spoil a field.
func faults(f field) []spoiled {
	invalid := func(kind metav1.CauseType) func(string) fault {
		return func(path string) fault { return fault{kind: kind, field: path} }
	}
	var all []spoiled
	if f.required {
		all = append(all, spoiled{
			what: "missing", want: invalid(metav1.CauseTypeFieldValueRequired),
			change: func(obj map[string]any, at []any) { remove(obj, at) },
		})
	}
	if wrong := wrongType(f); wrong != nil {
		all = append(all, spoiled{
			what: "wrong type", want: invalid(metav1.CauseTypeFieldValueInvalid),
			change: func(obj map[string]any, at []any) { set(obj, at, wrong) },
		})
	}
	if f.Format == "date-time" {
		all = append(all, spoiled{
			what: "no time", want: invalid(metav1.CauseTypeFieldValueInvalid),
			change: func(obj map[string]any, at []any) { set(obj, at, "yesterday") },
		})
	}
	if len(f.enum()) > 0 {
		all = append(all, spoiled{
			what: "wrong enum", want: invalid(metav1.CauseTypeFieldValueNotSupported),
			change: func(obj map[string]any, at []any) { set(obj, at, "NoSuchValue") },
		})
	}
	if f.Type == "object" && f.AdditionalProperties == nil && f.XPreserveUnknownFields == nil {
		all = append(all, spoiled{
			what: "unknown field", want: func(path string) fault { return fault{kind: unknown, field: path + ".noSuchField"} },
			change: func(obj map[string]any, at []any) { set(obj, append(slices.Clone(at), "noSuchField"), "x") },
		})
	}
	return all
}

// wrongType is a value that the field cannot have; nil if it can have any.
func wrongType(f field) any {
	switch {
	case f.isOpaque():
		return nil
	case f.XIntOrString, f.Type == "string":
		return true
	}
	return "a word"
}

// tryCreate is a dry run.
func (s *server) tryCreate(t *testing.T, obj map[string]any) error {
	t.Helper()
	u := &unstructured.Unstructured{Object: obj}
	delete(u.Object, "status")
	_, err := s.resource(t, u.GroupVersionKind()).Create(t.Context(), u,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// tryStatus is a dry run of writing the status of obj.
func (s *server) tryStatus(t *testing.T, created *unstructured.Unstructured, obj map[string]any) error {
	t.Helper()
	u := created.DeepCopy()
	u.Object["status"] = obj["status"]
	_, err := s.resource(t, u.GroupVersionKind()).UpdateStatus(t.Context(), u,
		metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// expect checks that the error is a refusal for the wanted fault.
func expect(t *testing.T, what string, err error, want fault) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Errorf("%s at %s: accepted, or no refusal: %v", what, want.field, err)
		return
	}
	if want.kind == unknown {
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), fmt.Sprintf("unknown field %q", want.field)) {
			t.Errorf("%s at %s: %v", what, want.field, err)
		}
		return
	}
	details := status.Status().Details
	if !apierrors.IsInvalid(err) || details == nil {
		t.Errorf("%s at %s: %v", what, want.field, err)
		return
	}
	for _, cause := range details.Causes {
		if cause.Field == want.field && (cause.Type == want.kind ||
			cause.Type == metav1.CauseTypeTypeInvalid && want.kind == metav1.CauseTypeFieldValueInvalid) {
			return
		}
	}
	t.Errorf("%s at %s (%s): %v", what, want.field, want.kind, err)
}

// byHand is a mistake as users make it, in testdata/invalid/<plural>.yaml.
type byHand struct {
	// Why it is here.
	Why string `json:"why"`
	// Version of the manifest; by default every one.
	Version string `json:"version,omitempty"`
	// Manifest is the name of the one that is changed, by a merge patch.
	Manifest string         `json:"manifest"`
	Patch    map[string]any `json:"patch"`
	// Refusal is a part of what the server says.
	Refusal string `json:"refusal"`
}

// testByHand makes the mistakes of testdata/invalid.
func testByHand(t *testing.T, s *server, gvk schema.GroupVersionKind, all []manifest) {
	t.Helper()
	for _, raw := range documents(t, filepath.Join("testdata", "invalid", all[0].plural+".yaml")) {
		c := byHand{}
		if err := yaml.UnmarshalStrict(raw, &c); err != nil {
			t.Fatal(err)
		}
		if c.Version != "" && c.Version != gvk.Version {
			continue
		}
		t.Run(strings.ReplaceAll(c.Why, " ", "-"), func(t *testing.T) {
			i := slices.IndexFunc(all, func(m manifest) bool {
				name, _, _ := unstructured.NestedString(fields(t, m.raw), "metadata", "name")
				return name == c.Manifest
			})
			if i < 0 {
				t.Fatalf("there is no manifest %s", c.Manifest)
			}
			obj := fields(t, all[i].raw)
			merge(obj, c.Patch)
			var err error
			if _, ok := c.Patch["status"]; ok {
				err = s.tryStatus(t, s.writeSpec(t, all[i]), obj)
			} else {
				err = s.tryCreate(t, obj)
			}
			if err == nil || !strings.Contains(err.Error(), c.Refusal) {
				t.Errorf("want %q, got %v", c.Refusal, err)
			}
		})
	}
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
			obj[key] = runtime.DeepCopyJSONValue(value)
		}
	}
}

func set(obj map[string]any, at []any, value any) {
	switch parent, last := parentOf(obj, at); parent := parent.(type) {
	case map[string]any:
		parent[last.(string)] = value
	case []any:
		parent[last.(int)] = value
	}
}

func remove(obj map[string]any, at []any) {
	if parent, last := parentOf(obj, at); last != nil {
		delete(parent.(map[string]any), last.(string))
	}
}

func parentOf(obj map[string]any, at []any) (parent, last any) {
	parent = obj
	for _, key := range at[:len(at)-1] {
		parent = child(parent, key)
	}
	return parent, at[len(at)-1]
}

// name is a place as the server names it.
func name(at []any) string {
	var b strings.Builder
	for _, key := range at {
		switch key := key.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", key)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(key)
		}
	}
	return b.String()
}

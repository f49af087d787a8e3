//go:build envtest

package compat

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// TestBothVersions installs every kind in all its versions, with conversion served by the test.
func TestBothVersions(t *testing.T) {
	t.Parallel()
	s := newServerOfBoth(t)
	t.Run("Manifests", func(t *testing.T) { testManifests(t, s) })
	t.Run("Invalid", func(t *testing.T) { testInvalid(t, s) })
}

// testManifests writes each manifest and reads it in both versions.
func testManifests(t *testing.T, s *server) {
	for _, m := range manifests(t) {
		t.Run(m.file+"/"+nameOf(fields(t, m.raw)), func(t *testing.T) {
			gvk := gvkOf(fields(t, m.raw))
			versions := s.versions(t, gvk.GroupKind())
			here := s.resource(t, gvk)
			s.write(t, m)
			got := read(t, here, m)
			want := fields(t, m.raw)
			if gvk.Version == "v1alpha1" && len(versions) > 1 { // it was converted there and back
				want, got = s.rewritten(t, want), s.rewritten(t, got)
			}
			s.compare(t, "same version", want, got)
			for _, version := range versions {
				if version == gvk.Version {
					continue
				}
				other := gvk.GroupKind().WithVersion(version)
				there := s.resource(t, other)
				want := inVersion(t, m, other)
				s.compare(t, "other version", want, read(t, there, m))
				s.checkUpdate(t, here, there, m)
			}
		})
	}
}

// write creates the object of a manifest and its status, strictly; it is gone when the test ends.
func (s *server) write(t *testing.T, m manifest) {
	t.Helper()
	created := s.writeSpec(t, m)
	status, ok := fields(t, m.raw)["status"]
	if !ok {
		return
	}
	created.Object["status"] = status
	strict := metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}
	if _, err := s.resource(t, created.GroupVersionKind()).UpdateStatus(t.Context(), created, strict); err != nil {
		t.Fatalf("write status: %v", err)
	}
}

// writeSpec creates the object of a manifest without its status.
func (s *server) writeSpec(t *testing.T, m manifest) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: fields(t, m.raw)}
	delete(obj.Object, "status")
	client := s.resource(t, obj.GroupVersionKind())
	created, err := client.Create(t.Context(), obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended.
		if err := client.Delete(contextOfCleanup(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
	return created
}

func read(t *testing.T, client dynamic.ResourceInterface, m manifest) map[string]any {
	t.Helper()
	name, _, _ := unstructured.NestedString(fields(t, m.raw), "metadata", "name")
	got, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return asFields(t, got)
}

func asFields(t *testing.T, obj any) map[string]any {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return fields(t, data)
}

// checkUpdate reads an object through there and writes it back as it is, like a controller of that version that has
// nothing to change. No version may see a change, but for zeros that a type writes or leaves out.
func (s *server) checkUpdate(t *testing.T, here, there dynamic.ResourceInterface, m manifest) {
	t.Helper()
	seen := func(client dynamic.ResourceInterface) map[string]any {
		obj := read(t, client, m)
		// These tell of the write. The generation stays, for it counts changes: but in a UnitedDeployment the zeros in the
		// template of a CloneSet get a default of the schema, and a write in v1alpha1 prunes the modes of a NodeImage.
		unstructured.RemoveNestedField(obj, "metadata", "managedFields")
		unstructured.RemoveNestedField(obj, "metadata", "resourceVersion")
		if obj["kind"] == "UnitedDeployment" || obj["kind"] == "NodeImage" {
			unstructured.RemoveNestedField(obj, "metadata", "generation")
		}
		dropModes(obj)
		return s.rewritten(t, obj)
	}
	before, beforeThere := seen(here), seen(there)
	strict := metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}
	updated, err := there.Update(t.Context(), &unstructured.Unstructured{Object: read(t, there, m)}, strict)
	if err != nil {
		t.Errorf("write back: %v", err)
		return
	}
	if _, err := there.UpdateStatus(t.Context(), updated, strict); err != nil {
		t.Errorf("write status back: %v", err)
		return
	}
	if diff := cmp.Diff(before, seen(here)); diff != "" {
		t.Errorf("written back through the other version, seen in the manifest's (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(beforeThere, seen(there)); diff != "" {
		t.Errorf("written back through the other version, seen in the other (-before +after):\n%s", diff)
	}
}

// compare reports what got has other than want, but for metadata that the server writes and defaults of the
// schema.
func (s *server) compare(t *testing.T, what string, want, got map[string]any) {
	t.Helper()
	for _, obj := range []map[string]any{want, got} {
		for _, key := range []string{
			"creationTimestamp", "generation", "managedFields", "namespace", "resourceVersion", "uid",
		} {
			unstructured.RemoveNestedField(obj, "metadata", key)
		}
	}
	dropDefaults(s.schemas[gvkOf(got)], "", want, got)
	if diff := cmp.Diff(without(want), without(got)); diff != "" {
		t.Errorf("%s (-written +read):\n%s", what, diff)
	}
}

// dropDefaults removes from got the defaults of the schema where want has nothing.
func dropDefaults(rows map[string]field, path string, want, got any) {
	switch got := got.(type) {
	case map[string]any:
		want, _ := want.(map[string]any)
		for key, value := range got {
			at := below(rows, path, key)
			if _, written := want[key]; written {
				dropDefaults(rows, at, want[key], value)
			} else if f := rows[at]; f.fallback != nil && cmp.Equal(f.fallback, value) {
				delete(got, key)
			}
		}
	case []any:
		want, _ := want.([]any)
		for i := range min(len(got), len(want)) {
			dropDefaults(rows, path+"[]", want[i], got[i])
		}
	}
}

// rewritten is the object as its Go type writes it: with zeros that the type always writes, and without
// those that it never does. What the schema does not describe stays as it was written.
func (s *server) rewritten(t *testing.T, written map[string]any) map[string]any {
	t.Helper()
	obj, err := s.scheme.New(gvkOf(written))
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, obj); err != nil {
		t.Fatal(err)
	}
	typed := asFields(t, obj)
	keepOpaque(s.schemas[gvkOf(written)], "", written, typed)
	return typed
}

// keepOpaque sets in typed what the schema does not describe as it is in written.
func keepOpaque(rows map[string]field, path string, written, typed any) {
	switch typed := typed.(type) {
	case map[string]any:
		written, _ := written.(map[string]any)
		for key := range maps.Clone(typed) {
			at := below(rows, path, key)
			value, ok := written[key]
			f, known := rows[at]
			switch {
			case known && !f.isOpaque(), strings.HasSuffix(at, "{}"), strings.HasPrefix(at, "metadata"):
				keepOpaque(rows, at, value, typed[key])
			case ok:
				typed[key] = value
			case path != "":
				delete(typed, key)
			}
		}
	case []any:
		written, _ := written.([]any)
		for i := range min(len(typed), len(written)) {
			keepOpaque(rows, path+"[]", written[i], typed[i])
		}
	}
}

package compat

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// manifest is a document of testdata/manifests/<version>/<plural>.yaml, in the shape users write it, or of
// <plural>.refused.yaml: that is what the schema of a kind holds but admission refuses.
type manifest struct {
	file, plural string
	raw          []byte
}

// TestManifestsDecode decodes every manifest strictly: what users write is what the types know.
func TestManifestsDecode(t *testing.T) {
	scheme := newScheme(t)
	for _, m := range manifests(t) {
		obj := fields(t, m.raw)
		t.Run(m.file+"/"+nameOf(obj), func(t *testing.T) {
			gvk := gvkOf(obj)
			if want := filepath.Dir(m.file); gvk.Version != want {
				t.Errorf("version %s in the directory of %s", gvk.Version, want)
			}
			typed, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(m.raw, typed); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestManifestsCoverTheSchema names every path under spec and status that no manifest of its kind and version sets,
// so that the tests which use the manifests pass every field through.
func TestManifestsCoverTheSchema(t *testing.T) {
	byKind := map[schema.GroupVersionKind][]any{}
	for _, m := range manifests(t) {
		obj := fields(t, m.raw)
		byKind[gvkOf(obj)] = append(byKind[gvkOf(obj)], obj)
	}
	paths := map[schema.GroupVersionKind]map[string]bool{}
	add := func(gvk schema.GroupVersionKind, path string) {
		if paths[gvk] == nil {
			paths[gvk] = map[string]bool{}
		}
		paths[gvk][path] = true
	}
	for _, row := range facts(t, "fields.tsv") {
		add(schema.FromAPIVersionAndKind(row[0], row[1]), row[2])
	}
	// And what the schemas have more, on purpose.
	for gvk, rows := range schemas(t) {
		for path := range rows {
			add(gvk, path)
		}
	}
	for gvk := range byKind {
		if paths[gvk] == nil {
			t.Errorf("%s: is no kind of the API", gvk)
		}
	}
	for gvk, known := range paths {
		var missing []string
		for _, path := range slices.Sorted(maps.Keys(known)) {
			if isContent(path) && !setByAny(byKind[gvk], path) {
				missing = append(missing, path)
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s: no manifest sets\n\t%s", gvk, strings.Join(missing, "\n\t"))
		}
	}
}

// isContent says whether a path lies in what users and controllers write.
func isContent(path string) bool {
	root, _, _ := strings.Cut(path, ".")
	return root == "spec" || root == "status"
}

func TestSetByAny(t *testing.T) {
	obj := fields(t, []byte(`{"a":{"list":[{"x":1},{"y":2}],"map":{"k":[{"z":null}]},"zero":0}}`))
	for path, want := range map[string]bool{
		"a": true, "a.zero": true, "a.list[].x": true, "a.list[].y": true, "a.list[].z": false,
		"a.map{}[].z": true, "a.map{}.z": false, "a.map.k": true, "b": false, "a.zero.x": false,
	} {
		if got := setByAny([]any{obj}, path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// setByAny says whether one of the values has the path, which has [] for the elements of a list and {} for the
// values of a map.
func setByAny(values []any, path string) bool {
	return slices.ContainsFunc(values, func(v any) bool {
		_, ok := locate(v, path)
		return ok
	})
}

// locate gives the keys and indices of the first place in v that the path means.
func locate(v any, path string) ([]any, bool) {
	if path == "" {
		return nil, true
	}
	step, rest := firstStep(path)
	for _, key := range keysOf(v, step) {
		if at, ok := locate(child(v, key), rest); ok {
			return append([]any{key}, at...), true
		}
	}
	return nil, false
}

// firstStep cuts the path after a key, a [] or a {}.
func firstStep(path string) (step, rest string) {
	end := strings.IndexAny(path, ".[{")
	switch end {
	case -1:
		end = len(path)
	case 0:
		end = len("[]")
	}
	return path[:end], strings.TrimPrefix(path[end:], ".")
}

// keysOf are the keys or indices of v that a step means.
func keysOf(v any, step string) []any {
	var keys []any
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == step || step == "{}" {
				keys = append(keys, key)
			}
		}
	case []any:
		for i := range v {
			if step == "[]" {
				keys = append(keys, i)
			}
		}
	}
	return keys
}

func child(v, key any) any {
	switch key := key.(type) {
	case string:
		return v.(map[string]any)[key]
	case int:
		return v.([]any)[key]
	}
	return nil
}

// manifests gives all documents, as JSON, in the order of their files.
func manifests(t *testing.T) []manifest {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "manifests", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []manifest
	for _, file := range files {
		short, _ := filepath.Rel(filepath.Join("testdata", "manifests"), file)
		plural, _, _ := strings.Cut(filepath.Base(file), ".")
		for _, raw := range documents(t, file) {
			all = append(all, manifest{file: short, plural: plural, raw: raw})
		}
	}
	if len(all) == 0 {
		t.Fatal("there are no manifests")
	}
	return all
}

// documents reads the documents of a YAML file as JSON.
func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		raw, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, raw)
	}
}

// facts reads a table of facts about the reference's CRDs, less its header.
func facts(t *testing.T, name string) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(data)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows[1:]
}

func gvkOf(obj map[string]any) schema.GroupVersionKind {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

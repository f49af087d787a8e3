package compat

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
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
	missing, kinds := map[schema.GroupVersionKind][]string{}, map[schema.GroupVersionKind]bool{}
	for _, row := range facts(t, "fields.tsv") {
		gvk, path := schema.FromAPIVersionAndKind(row[0], row[1]), row[2]
		kinds[gvk] = true
		if root, _, _ := strings.Cut(path, "."); root != "spec" && root != "status" {
			continue
		}
		if !setByAny(byKind[gvk], path) {
			missing[gvk] = append(missing[gvk], path)
		}
	}
	for gvk := range kinds {
		if paths := missing[gvk]; len(paths) > 0 {
			t.Errorf("%s: no manifest sets\n\t%s", gvk, strings.Join(paths, "\n\t"))
		}
	}
	for gvk := range byKind {
		if !kinds[gvk] {
			t.Errorf("%s: is no kind of the API", gvk)
		}
	}
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
	for ; path != ""; path = strings.TrimPrefix(path, ".") {
		step := path
		if end := strings.IndexAny(path, ".[{"); end > 0 {
			step = path[:end]
		} else if end == 0 {
			step = path[:2]
		}
		path = strings.TrimPrefix(path, step)
		values = descend(values, step)
	}
	return len(values) > 0
}

func descend(values []any, step string) []any {
	var below []any
	for _, v := range values {
		switch v := v.(type) {
		case map[string]any:
			if step == "{}" {
				for _, value := range v {
					below = append(below, value)
				}
			} else if value, ok := v[step]; ok {
				below = append(below, value)
			}
		case []any:
			if step == "[]" {
				below = append(below, v...)
			}
		}
	}
	return below
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

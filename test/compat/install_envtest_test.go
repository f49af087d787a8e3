//go:build envtest

package compat

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/config/crd"
)

// testColumns compares what kubectl prints of an object of each kind, and above it.
func testColumns(t *testing.T, s *server) {
	columns := map[schema.GroupVersionKind][][]string{}
	for _, row := range facts(t, "columns.tsv") {
		gvk := schema.FromAPIVersionAndKind(row[0], row[1])
		columns[gvk] = append(columns[gvk], row[2:])
	}
	var all []schema.GroupVersionKind
	resources, written := map[schema.GroupVersionKind]string{}, fullest(t, columns)
	for kind := range s.crds {
		m, ok := written[kind]
		if !ok {
			t.Errorf("%s has no manifest", kind)
			continue
		}
		s.write(t, m)
		for _, version := range s.versions(t, kind) {
			gvk := kind.WithVersion(version)
			all, resources[gvk] = append(all, gvk), strings.Join([]string{m.plural, version, kind.Group}, ".")
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	// kubectl lists the kinds of a scope at once: a process for each would take most of the time of these tests.
	for _, scope := range []apiextensionsv1.ResourceScope{apiextensionsv1.NamespaceScoped, apiextensionsv1.ClusterScoped} {
		var kinds []schema.GroupVersionKind
		var listed []string
		for _, gvk := range all {
			if s.crd(t, gvk.GroupKind()).Spec.Scope == scope {
				kinds, listed = append(kinds, gvk), append(listed, resources[gvk])
			}
		}
		narrow, wide := tables(t, s, listed), tables(t, s, listed, "-o", "wide", "-A")
		for i, gvk := range kinds {
			t.Run(listed[i], func(t *testing.T) {
				object := read(t, s.resource(t, gvk), written[gvk.GroupKind()])
				names, cells := header(columns[gvk], true), row(columns[gvk], object, true)
				if scope == apiextensionsv1.NamespaceScoped {
					names, cells = append([]string{"NAMESPACE"}, names...), append([]string{metav1.NamespaceDefault}, cells...)
				}
				if diff := cmp.Diff([][]string{header(columns[gvk], false), row(columns[gvk], object, false)},
					withoutAges(narrow[i])); diff != "" {
					t.Errorf("kubectl get (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([][]string{names, cells}, withoutAges(wide[i])); diff != "" {
					t.Errorf("kubectl get -o wide -A (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// fullest returns the manifest of each kind that fills most columns.
func fullest(t *testing.T, columns map[schema.GroupVersionKind][][]string) map[schema.GroupKind]manifest {
	t.Helper()
	empty := func(m manifest) int {
		object := fields(t, m.raw)
		return len(slices.DeleteFunc(row(columns[gvkOf(object)], object, true), func(cell string) bool { return cell != "" }))
	}
	best := map[schema.GroupKind]manifest{}
	for _, m := range manifests(t) {
		kind := gvkOf(fields(t, m.raw)).GroupKind()
		if b, ok := best[kind]; !ok || empty(m) < empty(b) {
			best[kind] = m
		}
	}
	return best
}

// header is the first line that kubectl prints for columns of the table. Without any, the server adds the age.
func header(columns [][]string, wide bool) []string {
	names := []string{"NAME"}
	for _, c := range columns {
		if name, priority := c[0], c[2]; wide || priority == "0" {
			names = append(names, strings.ToUpper(name))
		}
	}
	if len(columns) == 0 {
		names = append(names, "AGE")
	}
	return names
}

// row is the line that kubectl prints for an object, among those of other kinds. An age is "age".
func row(columns [][]string, object map[string]any, wide bool) []string {
	gvk := gvkOf(object)
	cells := []string{strings.ToLower(gvk.Kind) + "." + gvk.Group + "/" + locateAll(object, ".metadata.name")}
	for _, c := range columns {
		kind, priority, path := c[1], c[2], c[3]
		if !wide && priority != "0" {
			continue
		}
		cell := locateAll(object, path)
		if kind == "date" && cell != "" {
			cell = "age"
		}
		cells = append(cells, cell)
	}
	if len(columns) == 0 {
		cells = append(cells, "age")
	}
	return cells
}

// locateAll returns the values at a path of a column, as text. An API server prints nothing for a path with a filter of
// a string.
func locateAll(object map[string]any, path string) string {
	if strings.Contains(path, "[?") {
		return ""
	}
	values := []any{object}
	for step := range strings.SplitSeq(strings.ReplaceAll(strings.TrimPrefix(path, "."), `\.`, "\x00"), ".") {
		key, list := strings.CutSuffix(strings.ReplaceAll(step, "\x00", "."), "[*]")
		var below []any
		for _, v := range values {
			fields, _ := v.(map[string]any)
			elements, _ := fields[key].([]any)
			switch {
			case list:
				below = append(below, elements...)
			case fields[key] != nil:
				below = append(below, fields[key])
			}
		}
		values = below
	}
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, ",")
}

// tables returns the lines of the table that kubectl prints for each resource, cell by cell.
func tables(t *testing.T, s *server, resources []string, flags ...string) [][][]string {
	t.Helper()
	out, err := s.Kubectl(t.Context(), append([]string{"get", strings.Join(resources, ",")}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	var all [][][]string
	for text := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		lines := strings.Split(text, "\n")
		starts := regexp.MustCompile(`\S+\s*`).FindAllStringIndex(lines[0], -1)
		var table [][]string
		for _, line := range lines {
			var cells []string
			for i, at := range starts {
				end := len(line)
				if i+1 < len(starts) {
					end = min(end, at[1])
				}
				cells = append(cells, strings.TrimSpace(line[min(at[0], end):end]))
			}
			table = append(table, cells)
		}
		all = append(all, table)
	}
	if len(all) != len(resources) {
		t.Fatalf("kubectl prints %d tables for %d resources:\n%s", len(all), len(resources), out)
	}
	return all
}

// withoutAges returns a table with "age" for each duration.
func withoutAges(table [][]string) [][]string {
	for _, cells := range table[1:] {
		for i, cell := range cells {
			if regexp.MustCompile(`^(\d+[smhdy])+$`).MatchString(cell) {
				cells[i] = "age"
			}
		}
	}
	return table
}

// TestKustomizations installs the CRDs as a user does, with a client-side apply, and uses the storage versions without
// any webhook.
func TestKustomizations(t *testing.T) {
	t.Parallel()
	hub, err := crd.Hub()
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, hub)
	for _, dir := range []string{"both", "v1beta1"} {
		// The second over the first: so a platform drops the old version again.
		if out, err := s.Kubectl(t.Context(), "apply", "-k", filepath.Join("..", "..", "config", "crd", dir)); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if _, err := s.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd", "--all"); err != nil {
			t.Fatal(err)
		}
	}
	s.waitForKinds(t)
	for _, m := range manifests(t) {
		gvk := gvkOf(fields(t, m.raw))
		if !slices.Contains(s.versions(t, gvk.GroupKind()), gvk.Version) {
			continue
		}
		t.Run(m.file+"/"+nameOf(fields(t, m.raw)), func(t *testing.T) {
			s.write(t, m)
			s.compare(t, "same version", fields(t, m.raw), read(t, s.resource(t, gvk), m))
		})
	}
}

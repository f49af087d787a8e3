package crd_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kruisekit/kruisekit/config/crd"
)

// TestFieldsAreThoseOfTheReference compares every path of every version with the table of facts.
func TestFieldsAreThoseOfTheReference(t *testing.T) {
	want := map[string]string{}
	for _, row := range readTable(t, "testdata/fields.tsv") {
		want[strings.Join(row[:3], " ")] = strings.Join(row[3:], " ")
	}
	got := map[string]string{}
	for _, c := range full(t) {
		for _, v := range c.Spec.Versions {
			f := fields{prefix: c.Spec.Group + "/" + v.Name + " " + c.Spec.Names.Kind + " ", rows: got}
			f.children("", v.Schema.OpenAPIV3Schema)
		}
	}
	compare(t, want, got, deliberate())
}

// TestColumnsAreThoseOfTheReference compares the printer columns and their order.
func TestColumnsAreThoseOfTheReference(t *testing.T) {
	want := map[string][]string{}
	for _, row := range readTable(t, "testdata/columns.tsv") {
		key := row[0] + " " + row[1]
		want[key] = append(want[key], strings.Join(row[2:], " "))
	}
	for _, c := range full(t) {
		for _, v := range c.Spec.Versions {
			key := c.Spec.Group + "/" + v.Name + " " + c.Spec.Names.Kind
			var got []string
			for _, p := range v.AdditionalPrinterColumns {
				got = append(got, fmt.Sprintf("%s %s %d %s", p.Name, p.Type, p.Priority, p.JSONPath))
			}
			if !slices.Equal(want[key], got) {
				t.Errorf("%s: columns\nwant %q\ngot  %q", key, want[key], got)
			}
			delete(want, key)
		}
	}
	for key := range want {
		t.Errorf("%s has columns but no CRD", key)
	}
}

func compare(t *testing.T, want, got map[string]string, allowed map[string]string) {
	t.Helper()
	used := map[string]bool{}
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if want[key] == got[key] {
			continue
		}
		if pattern, ok := allowedBy(key, allowed); ok {
			used[pattern] = true
			continue
		}
		t.Errorf("%s: want %q, got %q", key, want[key], got[key])
	}
	for pattern := range allowed {
		if !used[pattern] {
			t.Errorf("the deliberate difference %q is none", pattern)
		}
	}
}

func allowedBy(key string, allowed map[string]string) (string, bool) {
	for pattern := range allowed {
		if ok, _ := path.Match(pattern, strings.ReplaceAll(key, "[]", "")); ok {
			return pattern, true
		}
	}
	return "", false
}

// fields collects a row for each path of a schema, in the words of the table.
type fields struct {
	prefix string
	rows   map[string]string
}

func (f fields) children(at string, s *apiextensionsv1.JSONSchemaProps) {
	for name, p := range s.Properties {
		child := strings.TrimPrefix(at+"."+name, ".")
		required := "n"
		if slices.Contains(s.Required, name) {
			required = "y"
		}
		f.rows[f.prefix+child] = strings.Join([]string{typeName(&p), required, defaultOf(&p), enumOf(&p)}, " ")
		f.descend(child, &p)
	}
}

func (f fields) descend(at string, s *apiextensionsv1.JSONSchemaProps) {
	switch {
	case s.Items != nil:
		f.descend(at+"[]", s.Items.Schema)
	case s.AdditionalProperties != nil:
		f.descend(at+"{}", s.AdditionalProperties.Schema)
	case at != "metadata":
		f.children(at, s)
	}
}

func typeName(s *apiextensionsv1.JSONSchemaProps) string {
	name := s.Type
	switch {
	case s.XIntOrString:
		name = "int-or-string"
	case s.Items != nil:
		return "[]" + typeName(s.Items.Schema)
	case s.AdditionalProperties != nil:
		return "map[string]" + typeName(s.AdditionalProperties.Schema)
	case name == "":
		name = "any"
	case s.Format != "":
		name += "(" + s.Format + ")"
	}
	if s.XEmbeddedResource {
		name += "+embedded-resource"
	}
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		name += "+preserve-unknown"
	}
	return name
}

func defaultOf(s *apiextensionsv1.JSONSchemaProps) string {
	if s.Default == nil {
		return ""
	}
	return string(s.Default.Raw)
}

// enumOf is the enum of a value, or of the items of a list.
func enumOf(s *apiextensionsv1.JSONSchemaProps) string {
	if s.Items != nil {
		return enumOf(s.Items.Schema)
	}
	var values []string
	for _, v := range s.Enum {
		text, err := strconv.Unquote(string(v.Raw))
		if err != nil || text == "" {
			text = string(v.Raw)
		}
		if text == "" {
			text = `""`
		}
		values = append(values, text)
	}
	return strings.Join(values, ",")
}

// full loads the CRDs with all versions.
func full(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return crds
}

// readTable reads a table of tab-separated columns, less its header.
func readTable(t *testing.T, name string) [][]string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(data)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows[1:]
}

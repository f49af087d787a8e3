package monitoring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// resource is an entry of the configuration of kube-state-metrics.
type resource struct {
	GroupVersionKind struct{ Group, Version, Kind string }
	MetricNamePrefix string
	LabelsFromPath   map[string][]string
	Metrics          []objectMetric
}

type objectMetric struct {
	Name, Help string
	Each       struct {
		Type                  string
		Gauge, Info, StateSet *reading
	}
}

type reading struct {
	Path, ValueFrom, List []string
	LabelName             string
	LabelsFromPath        map[string][]string
	NilIsZero             bool
}

func (m objectMetric) reading() *reading {
	return map[string]*reading{"Gauge": m.Each.Gauge, "Info": m.Each.Info, "StateSet": m.Each.StateSet}[m.Each.Type]
}

func (m objectMetric) labels() []string {
	r := m.reading()
	labels := keysOf(r.LabelsFromPath)
	if r.LabelName != "" {
		labels = append(labels, r.LabelName)
	}
	return labels
}

func objectMetrics(t *testing.T) []resource {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "monitoring", "kube-state-metrics.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configuration struct {
		Kind string
		Spec struct{ Resources []resource }
	}
	if err := yaml.UnmarshalStrict(text, &configuration); err != nil {
		t.Fatal(err)
	}
	return configuration.Spec.Resources
}

// schema of OpenAPI.
type schema struct {
	Type                 string
	Enum                 []any
	Properties           map[string]*schema
	Items                *schema
	AdditionalProperties *schema
	Unknown              bool `json:"x-kubernetes-preserve-unknown-fields"`
}

// at is what a path leads to; nil for nothing.
func (s *schema) at(path ...string) *schema {
	for _, key := range path {
		if s.Items != nil {
			s = s.Items
		}
		switch next := s.Properties[key]; {
		case next != nil:
			s = next
		case s.AdditionalProperties != nil:
			s = s.AdditionalProperties
		case s.Unknown:
			return &schema{Type: "string"} // part of a pod, which the schema leaves open
		default:
			return nil
		}
	}
	return s
}

type definition struct {
	Spec struct {
		Scope    string
		Names    struct{ Kind, Singular string }
		Versions []struct {
			Name    string
			Storage bool
			Schema  struct {
				OpenAPIV3Schema *schema
			}
		}
	}
}

// Each metric of an object is read from a field that its kind has, in the stored version.
func TestMetricsOfObjects(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*_*.yaml"))
	if err != nil || len(paths) != 18 {
		t.Fatalf("%d CRDs, %v", len(paths), err)
	}
	all := map[string]resource{}
	for _, r := range objectMetrics(t) {
		all[r.GroupVersionKind.Kind] = r
	}
	for _, path := range paths {
		var d definition
		read(t, filepath.Join("..", "crd", "bases", filepath.Base(path)), &d)
		kind := d.Spec.Names.Kind
		r, ok := all[kind]
		if !ok {
			t.Errorf("%s has no metrics", kind)
			continue
		}
		if r.MetricNamePrefix != "kruise_"+d.Spec.Names.Singular || r.LabelsFromPath[d.Spec.Names.Singular] == nil ||
			(r.LabelsFromPath["namespace"] != nil) != (d.Spec.Scope == "Namespaced") {
			t.Errorf("metrics of %s begin with %s and have the labels %v", kind, r.MetricNamePrefix, r.LabelsFromPath)
		}
		for _, version := range d.Spec.Versions {
			if version.Name == r.GroupVersionKind.Version {
				checkPaths(t, r, version.Schema.OpenAPIV3Schema)
				if !version.Storage {
					t.Errorf("%s is read in the version %s, which is not stored", kind, version.Name)
				}
			}
		}
	}
}

func checkPaths(t *testing.T, r resource, s *schema) {
	t.Helper()
	names := map[string]bool{}
	for _, m := range r.Metrics {
		name := r.MetricNamePrefix + "_" + m.Name
		if names[name] || m.Help == "" {
			t.Errorf("%s is there twice, or has no help", name)
		}
		names[name] = true
		from := m.reading()
		if from == nil {
			t.Errorf("%s has the type %s, and no such part", name, m.Each.Type)
			continue
		}
		if len(from.Path) > 0 && from.Path[0] == "metadata" {
			continue
		}
		value := s.at(from.Path...)
		if value == nil {
			t.Errorf("%s is read from %s, which does not exist", name, strings.Join(from.Path, "."))
			continue
		}
		if value.Items != nil {
			value = value.Items
		}
		for label, path := range from.LabelsFromPath {
			if value.at(path...) == nil {
				t.Errorf("the label %s of %s is read from %s, which does not exist", label, name, strings.Join(path, "."))
			}
		}
		if value = value.at(from.ValueFrom...); value == nil {
			t.Errorf("the value of %s is read from %s, which does not exist", name, strings.Join(from.ValueFrom, "."))
			continue
		}
		for _, allowed := range value.Enum {
			if text, _ := allowed.(string); m.Each.Type == "StateSet" && text != "" && !slices.Contains(from.List, text) {
				t.Errorf("%s lacks the state %s", name, text)
			}
		}
		if m.Each.Type == "Gauge" && !slices.Contains([]string{"integer", "number", "boolean", ""}, value.Type) &&
			!strings.HasSuffix(from.Path[len(from.Path)-1], "Time") {
			t.Errorf("%s is a number, and %s a %s", name, strings.Join(from.Path, "."), value.Type)
		}
	}
}

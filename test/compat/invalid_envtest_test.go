//go:build envtest

package compat

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// testInvalid makes the mistakes of testdata/invalid, and expects that the server refuses them and names the field. The
// tests of config/crd compare the schemas with those of the reference, field by field.
func testInvalid(t *testing.T, s *server) {
	byKind := map[schema.GroupVersionKind][]manifest{}
	for _, m := range manifests(t) {
		gvk := gvkOf(fields(t, m.raw))
		byKind[gvk] = append(byKind[gvk], m)
	}
	for gvk, all := range byKind {
		t.Run(gvk.Version+"/"+gvk.Kind, func(t *testing.T) { testByHand(t, s, gvk, all) })
	}
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

package compat

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/config/crd"
)

// field is what the schema says about a path.
type field struct {
	*apiextensionsv1.JSONSchemaProps
	// fallback is the default, nil if there is none.
	fallback any
}

// isOpaque says that nothing below the field is described.
func (f field) isOpaque() bool {
	return f.Type == "" && !f.XIntOrString
}

// schemas gives the fields of each version of each kind by path, which has [] for the elements of a list and {} for
// the values of a map.
func schemas(t *testing.T) map[schema.GroupVersionKind]map[string]field {
	t.Helper()
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[schema.GroupVersionKind]map[string]field{}
	for _, c := range crds {
		for _, v := range c.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: c.Spec.Group, Version: v.Name, Kind: c.Spec.Names.Kind}
			all[gvk] = map[string]field{}
			addFields(t, all[gvk], "", v.Schema.OpenAPIV3Schema)
		}
	}
	return all
}

func addFields(t *testing.T, rows map[string]field, at string, s *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	switch {
	case s.Items != nil:
		addFields(t, rows, at+"[]", s.Items.Schema)
	case s.AdditionalProperties != nil:
		addFields(t, rows, at+"{}", s.AdditionalProperties.Schema)
	}
	for name, p := range s.Properties {
		child := strings.TrimPrefix(at+"."+name, ".")
		f := field{JSONSchemaProps: &p}
		if p.Default != nil {
			if err := yaml.Unmarshal(p.Default.Raw, &f.fallback); err != nil {
				t.Fatal(err)
			}
		}
		rows[child] = f
		addFields(t, rows, child, &p)
	}
}

// below is the path of a key in the words of schemas, where the keys of a map are all alike.
func below(rows map[string]field, path, key string) string {
	if f, ok := rows[path]; ok && f.AdditionalProperties != nil {
		return path + "{}"
	}
	return strings.TrimPrefix(path+"."+key, ".")
}

package conversion

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/config/crd"
)

// TestEveryKindIsConverted compares the table with the CRDs: each kind of two versions, and each path that the
// schema leaves open in both. Paths inside of lists are no concern: the types hold those as raw bytes.
func TestEveryKindIsConverted(t *testing.T) {
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	table := kinds()
	for _, c := range crds {
		if len(c.Spec.Versions) < 2 {
			continue
		}
		gk := schema.GroupKind{Group: c.Spec.Group, Kind: c.Spec.Names.Kind}
		k, ok := table[gk]
		delete(table, gk)
		if !ok {
			t.Errorf("%s has two versions and no conversion", gk)
			continue
		}
		want := open("", c.Spec.Versions[0].Schema.OpenAPIV3Schema)
		hub := open("", c.Spec.Versions[1].Schema.OpenAPIV3Schema)
		want = slices.DeleteFunc(want, func(path string) bool { return !slices.Contains(hub, path) })
		for _, path := range want {
			if !converted()[gk.Kind+" "+path] && !slices.ContainsFunc(k.opaque, func(o string) bool {
				return path == o || strings.HasPrefix(path, o+".")
			}) {
				t.Errorf("%s: the schema leaves %s open, and the conversion types it", gk, path)
			}
		}
		for _, o := range k.opaque {
			if !slices.ContainsFunc(want, func(path string) bool { return path == o || strings.HasPrefix(path, o+".") }) {
				t.Errorf("%s: nothing below %s is open", gk, o)
			}
		}
	}
	for gk := range table {
		t.Errorf("%s is converted, but has no CRD of two versions", gk)
	}
}

// converted are open paths in which a conversion reads and writes.
func converted() map[string]bool {
	return map[string]bool{
		// Annotations of the old shape of a CloneSet are fields in the new one.
		"UnitedDeployment spec.template.cloneSetTemplate.metadata": true,
	}
}

// open lists the paths under which a schema allows anything.
func open(at string, s *apiextensionsv1.JSONSchemaProps) []string {
	if p := s.XPreserveUnknownFields; p != nil && *p {
		return []string{strings.TrimPrefix(at, ".")}
	}
	if s.Items != nil && s.Items.Schema.XPreserveUnknownFields != nil {
		return []string{strings.TrimPrefix(at, ".")}
	}
	var all []string
	for name, p := range s.Properties {
		all = append(all, open(at+"."+name, &p)...)
	}
	return all
}

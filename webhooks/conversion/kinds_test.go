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
		got := slices.Clone(k.opaque)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s: open paths\nwant %q\ngot  %q", gk, want, got)
		}
	}
	for gk := range table {
		t.Errorf("%s is converted, but has no CRD of two versions", gk)
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

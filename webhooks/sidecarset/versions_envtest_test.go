//go:build envtest

package sidecarset_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

// testVersions writes a set in the older version, and reads it in both: what has another place there is found again,
// and both hashes are the same.
func testVersions(t *testing.T, g *reviewtest.Ground) {
	set := plain(t, "v1alpha1", "versions", `{"namespace":"ns1","selector":{"matchLabels":{"app":"versions"}}}`)
	set.SetLabels(map[string]string{v1beta1.SidecarSetCustomVersionLabel: "7", "team": "blue"})
	create(t, g, set)
	read := func(version string) *unstructured.Unstructured {
		t.Helper()
		as := &unstructured.Unstructured{}
		as.SetGroupVersionKind(schema.GroupVersionKind{
			Group: v1beta1.GroupVersion.Group, Version: version, Kind: "SidecarSet",
		})
		if err := g.Client.Get(t.Context(), client.ObjectKey{Name: "versions"}, as); err != nil {
			t.Fatal(err)
		}
		return as
	}
	hub, old := read("v1beta1"), read("v1alpha1")
	same(t, "a namespace selects the one of its name", `{"matchLabels":{"kubernetes.io/metadata.name":"ns1"}}`,
		plaintest.Encode(t, reviewtest.Field(hub, "spec", "namespaceSelector")))
	same(t, "the field is of the older version", nil, reviewtest.Field(hub, "spec", "namespace"))
	same(t, "the custom version is a field", any("7"), reviewtest.Field(hub, "spec", "customVersion"))
	same(t, "and no label", map[string]string{"team": "blue"}, hub.GetLabels())
	same(t, "the namespace is read back", any("ns1"), reviewtest.Field(old, "spec", "namespace"))
	same(t, "so is the label",
		map[string]string{v1beta1.SidecarSetCustomVersionLabel: "7", "team": "blue"}, old.GetLabels())
	for _, key := range []string{"kruise.io/sidecarset-hash", "kruise.io/sidecarset-hash-without-image"} {
		if value := hub.GetAnnotations()[key]; value == "" || value != old.GetAnnotations()[key] ||
			value != set.GetAnnotations()[key] {
			t.Errorf("%s is %q, and %q in the older version", key, value, old.GetAnnotations()[key])
		}
	}
}

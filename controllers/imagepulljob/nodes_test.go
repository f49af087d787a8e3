package imagepulljob

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// The API server takes times that Go does not, in a NodeImage as elsewhere. Such a one is left out, and no other with it.
func TestDecoded(t *testing.T) {
	node := func(version, created string) *unstructured.Unstructured {
		raw := stored.Untyped(nodeGVK())
		raw.SetName("node-1")
		raw.SetUID("u1")
		raw.SetResourceVersion(version)
		raw.Object["spec"] = map[string]any{"images": map[string]any{"nginx": map[string]any{
			"tags": []any{map[string]any{"tag": "1", "createdAt": created}},
		}}}
		return raw
	}
	var d decoded
	first := d.of(node("1", "2026-01-01T00:00:00Z"))
	if first == nil || len(first.Spec.Images["nginx"].Tags) != 1 {
		t.Fatalf("decoded %+v", first)
	}
	if again := d.of(node("1", "2026-01-01T00:00:00Z")); again != first {
		t.Error("it was decoded again")
	}
	if bad := d.of(node("2", "2026-01-01t00:00:00z")); bad != nil {
		t.Errorf("decoded %+v", bad)
	}
	if mended := d.of(node("3", "2026-01-02T00:00:00Z")); mended == nil || mended == first || mended.ResourceVersion != "3" {
		t.Errorf("decoded %+v", mended)
	}
	d.forget("node-1")
	if len(d.known) != 0 {
		t.Errorf("%v are remembered", d.known)
	}
}

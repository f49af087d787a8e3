package process

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
)

// A manager of one namespace still reads the history of SidecarSets, which is in its own.
func TestCacheOfOneNamespace(t *testing.T) {
	var o options.Options
	o.Cache.Namespace, o.Webhook.Namespace = "shop", "kruise-system"
	mo, err := managerOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	for object, by := range mo.Cache.ByObject {
		if _, is := object.(*appsv1.ControllerRevision); !is {
			continue
		}
		if diff := cmp.Diff([]string{"kruise-system", "shop"}, slices.Sorted(maps.Keys(by.Namespaces))); diff != "" {
			t.Errorf("namespaces of revisions (-want +got):\n%s", diff)
		}
		return
	}
	t.Error("revisions are read of one namespace only")
}

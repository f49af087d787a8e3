package sidecarset

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/revision"
)

// TestRecordedNames: a set that has no history yet gets the revision that a running reference gave it, by name.
func TestRecordedNames(t *testing.T) {
	for _, step := range []string{"1-created", "3-updated"} {
		data, err := os.ReadFile("../../test/compat/testdata/recorded/" + step + "/sidecarsets.v1beta1.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var list v1beta1.SidecarSetList
		if err := yaml.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 0 {
			t.Fatal("there are no sets")
		}
		for i := range list.Items {
			set := &list.Items[i]
			content, err := encode(set)
			if err != nil {
				t.Fatal(err)
			}
			if got := (&snapshot{set: set}).resolve(content); got.Verdict != revision.Create || got.Name != set.Status.LatestRevision {
				t.Errorf("%s: want %s, got %s", step, set.Status.LatestRevision, got.Name)
			}
		}
	}
}

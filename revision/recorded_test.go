package revision_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/revision"
)

// TestRecordedRevisions encodes and hashes the templates of revisions that a running reference stored.
func TestRecordedRevisions(t *testing.T) {
	for _, r := range recorded(t) {
		t.Run(r.OwnerReferences[0].Kind+"/"+r.Name, func(t *testing.T) {
			template, err := revision.Decode(r.Data.Raw)
			if err != nil {
				t.Fatal(err)
			}
			data, err := revision.Encode(template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(r.Data.Raw), string(data)); diff != "" {
				t.Errorf("data (-recorded +ours):\n%s", diff)
			}
			if r.OwnerReferences[0].Kind == "DaemonSet" {
				return // its name derives from the memory layout of an older type library
			}
			hash := revision.Hash(data, ptr.To[int32](0))
			if got := revision.Name(r.OwnerReferences[0].Name, hash); got != r.Name {
				t.Errorf("name: want %s, got %s", r.Name, got)
			}
		})
	}
}

// recorded gives the revisions, with their data as the compact JSON with sorted keys that the API server holds.
func recorded(t *testing.T) []*appsv1.ControllerRevision {
	t.Helper()
	file, err := os.ReadFile("../test/compat/testdata/recorded/3-updated/controllerrevisions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := appsv1.ControllerRevisionList{}
	if err := yaml.Unmarshal(file, &list); err != nil {
		t.Fatal(err)
	}
	var all []*appsv1.ControllerRevision
	for i := range list.Items {
		r := &list.Items[i]
		if r.OwnerReferences[0].Kind == "UnitedDeployment" {
			continue // its template is no pod template
		}
		var data any
		if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
			t.Fatal(err)
		}
		if r.Data.Raw, err = json.Marshal(data); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

package migrate_test

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/migrate"
)

// The template of a CloneSet has the fields of that of the Deployment which the types lack, in each version.
func TestUnknownFields(t *testing.T) {
	const text = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{},
		"template":{"spec":{"newer":"s","containers":[{"name":"a"},{"name":"b","newer":"c"}]}}}}`
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	d, err := kinds.Read[appsv1.Deployment](object)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{v1beta1.GroupVersion.Version, v1alpha1.GroupVersion.Version} {
		gvk := v1beta1.GroupVersion.WithKind("CloneSet")
		gvk.Version = version
		written, err := kinds.WriteCloneSet(gvk, migrate.CloneSetOf(d, "web"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(written.Object["spec"].(map[string]any)["template"])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got), `"newer":"s"`) || !strings.Contains(string(got), `"name":"b","newer":"c"`) {
			t.Errorf("%s: %s", version, got)
		}
	}
}

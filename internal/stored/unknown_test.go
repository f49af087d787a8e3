package stored_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
)

// Every template that a kind has keeps the fields that its types lack, packed or not.
func TestUnknownFields(t *testing.T) {
	const template = `{"spec":{"containers":[{"name":"a","newer":"x"}]}}`
	of := func(text string) string { return strings.ReplaceAll(text, "TEMPLATE", template) }
	for name, c := range map[string]struct {
		decode func(*unstructured.Unstructured) []any
		spec   string
	}{
		"CloneSet":     {decoded[v1beta1.CloneSet], `{"template":TEMPLATE}`},
		"StatefulSet":  {decoded[v1beta1.StatefulSet], `{"template":TEMPLATE}`},
		"DaemonSet":    {decoded[v1beta1.DaemonSet], `{"template":TEMPLATE}`},
		"BroadcastJob": {decoded[v1beta1.BroadcastJob], `{"template":TEMPLATE}`},
		"cron job": {
			decoded[v1beta1.AdvancedCronJob], `{"template":{"jobTemplate":{"spec":{"template":TEMPLATE}}}}`,
		},
		"cron broadcast job": {
			decoded[v1beta1.AdvancedCronJob], `{"template":{"broadcastJobTemplate":{"spec":{"template":TEMPLATE}}}}`,
		},
		"united CloneSet": {
			decoded[v1beta1.UnitedDeployment], `{"template":{"cloneSetTemplate":{"spec":{"template":TEMPLATE}}}}`,
		},
		"united StatefulSet": {
			decoded[v1beta1.UnitedDeployment], `{"template":{"statefulSetTemplate":{"spec":{"template":TEMPLATE}}}}`,
		},
		"united Advanced StatefulSet": {
			decoded[v1beta1.UnitedDeployment], `{"template":{"advancedStatefulSetTemplate":{"spec":{"template":TEMPLATE}}}}`,
		},
		"united Deployment": {
			decoded[v1beta1.UnitedDeployment], `{"template":{"deploymentTemplate":{"spec":{"template":TEMPLATE}}}}`,
		},
		"SidecarSet": {decoded[v1beta1.SidecarSet], `{"containers":[{"name":"a","newer":"x"}]}`},
	} {
		raw := &unstructured.Unstructured{}
		text := `{"apiVersion":"apps.kruise.io/v1beta1","kind":"X","metadata":{"name":"x"},"spec":` + of(c.spec) + `}`
		if err := json.Unmarshal([]byte(text), &raw.Object); err != nil {
			t.Fatal(err)
		}
		pack := raw.DeepCopy()
		stored.Pack(pack)
		for _, raw := range []*unstructured.Unstructured{raw, pack} {
			object := c.decode(raw)[0]
			if set, ok := object.(*v1beta1.SidecarSet); ok {
				if kept := set.Annotations[revision.UnknownFieldsKey]; kept != `{"containers":[{"name":"a","newer":"x"}]}` {
					t.Errorf("%s keeps %s", name, kept)
				}
				continue
			}
			values, err := revision.WithUnknownFields(object)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			if !revision.HasUnknownFields(object) || strings.Count(string(got), `"newer":"x"`) != 1 {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

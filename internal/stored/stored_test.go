package stored_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

func TestDecode(t *testing.T) {
	set := func(containers any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "web", "generation": int64(3)},
			"spec": map[string]any{
				"replicas": int64(2),
				"template": map[string]any{"spec": map[string]any{"containers": containers, "fromTheFuture": "kept"}},
			},
			"status": map[string]any{"replicas": int64(1)},
		}}
	}
	cases := map[string]struct {
		why, malformed string
		containers     any
		replicas       bool
	}{
		"as it should be": {"a field that the type does not know is no harm", "", []any{map[string]any{"name": "web"}}, true},
		"a number":        {"the field is named", "template.spec.containers", int64(7), false},
		"a text inside": {
			why:        "the field is named",
			malformed:  "template.spec.containers.ports",
			containers: []any{map[string]any{"ports": "80"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			raw := set(c.containers)
			object, malformed, err := stored.Decode[v1beta1.CloneSet](raw)
			if err != nil {
				t.Fatal(err)
			}
			if c.malformed == "" && malformed != nil ||
				c.malformed != "" && (malformed == nil || !strings.Contains(malformed.Error(), c.malformed)) {
				t.Errorf("%s: %v, want one about %q", c.why, malformed, c.malformed)
			}
			if object.Name != "web" || object.Generation != 3 || object.Status.Replicas != 1 ||
				(object.Spec.Replicas != nil) != c.replicas {
				t.Errorf("decoded %+v", object)
			}
		})
	}
	for _, pack := range []func(*unstructured.Unstructured){func(*unstructured.Unstructured) {}, stored.Pack} {
		wide := set([]any{})
		wide.Object["spec"].(map[string]any)["replicas"] = int64(1)<<32 + 2
		wide.Object["metadata"].(map[string]any)["generation"] = int64(1) << 40
		pack(wide)
		object, malformed, err := stored.Decode[v1beta1.CloneSet](wide)
		if err != nil || malformed == nil || !strings.Contains(malformed.Error(), "spec.replicas") ||
			object.Spec.Replicas != nil || object.Generation != 1<<40 {
			t.Errorf("replicas of more than 32 bits: %v, %v, decoded %+v", malformed, err, object)
		}
	}
	broken := set(int64(7))
	broken.Object["status"] = "none"
	if _, _, err := stored.Decode[v1beta1.CloneSet](broken); err == nil {
		t.Error("a status that is a text was decoded")
	}
}

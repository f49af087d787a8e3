package sidecar_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/sidecar"
)

// newer is the spec of a set with fields of a newer Kubernetes.
const newer = `{
	"selector":{"matchLabels":{"app":"shop"}},
	"containers":[
		{"name":"agent","image":"agent:1","newFlag":true,"volumeMounts":[{"name":"data","mountPath":"/data"}]},
		{"name":"hot","image":"hot:1","newFlag":"h",
		 "upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"empty:1"}}
	],
	"initContainers":[{"name":"init","image":"init:1","newInit":9007199254740993}],
	"volumes":[{"name":"data","newVolume":{"size":"1Gi"}}]
}`

func newerSet(t *testing.T) *v1beta1.SidecarSet {
	t.Helper()
	set := sidecarSet("newer")
	var values map[string]any
	if err := utiljson.Unmarshal([]byte(newer), &values); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(newer), &set.Spec); err != nil {
		t.Fatal(err)
	}
	set.Default()
	if err := sidecar.KeepUnknownFields(set, values); err != nil {
		t.Fatal(err)
	}
	return set
}

// fieldsOf returns the fields of a pod's list that the types lack, by name.
func fieldsOf(t *testing.T, pod *corev1.Pod, list string) map[string]any {
	t.Helper()
	values, err := revision.WithUnknownFields(pod)
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := values["spec"].(map[string]any)
	elements, _ := spec[list].([]any)
	found := map[string]any{}
	for _, element := range elements {
		fields, _ := element.(map[string]any)
		for key, value := range fields {
			if name, ok := fields["name"].(string); ok && strings.HasPrefix(key, "new") {
				found[name] = value
			}
		}
	}
	return found
}

// An injected pod has the fields of the set that the types lack beside those of its own, also from a revision.
func TestUnknownFields(t *testing.T) {
	set := newerSet(t)
	now, err := sidecar.Parse(set)
	if err != nil {
		t.Fatal(err)
	}
	former, err := sidecar.Restore(now, revisionOf("newer", "newer-1", 1, "", `{"spec":{"$patch":"replace",`+newer[1:]+`}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]*sidecar.Set{"the spec": now, "a revision": former} {
		pod := &corev1.Pod{}
		pod.Labels = map[string]string{"app": "shop"}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "plain", Image: "plain:1"}}
		if err := revision.KeepUnknownFields(pod, map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "app", "newOwn": "o"},
		}}}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // an injected pod is admitted again
			injection, err := sidecar.Inject(pod, []*sidecar.Set{set}, at())
			if err != nil {
				t.Fatal(err)
			}
			if injection.Pod != nil {
				pod = injection.Pod
			}
			for list, want := range map[string]map[string]any{
				"containers":     {"app": "o", "agent": true, "hot-1": "h", "hot-2": "h"},
				"initContainers": {"init": int64(9007199254740993)},
				"volumes":        {"data": map[string]any{"size": "1Gi"}},
			} {
				if diff := cmp.Diff(want, fieldsOf(t, pod, list)); diff != "" {
					t.Errorf("%s, %s (-want +got):\n%s", name, list, diff)
				}
			}
		}
	}
}

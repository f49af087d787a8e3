package stored_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/objects"
)

// decoders are those of the kinds that have recordings.
func decoders() map[string]func(*unstructured.Unstructured) []any {
	return map[string]func(*unstructured.Unstructured) []any{
		"advancedcronjobs":          decoded[v1beta1.AdvancedCronJob],
		"broadcastjobs":             decoded[v1beta1.BroadcastJob],
		"clonesets":                 decoded[v1beta1.CloneSet],
		"containerrecreaterequests": decoded[v1beta1.ContainerRecreateRequest],
		"daemonsets":                decoded[v1beta1.DaemonSet],
		"imagelistpulljobs":         decoded[v1beta1.ImageListPullJob],
		"imagepulljobs":             decoded[v1beta1.ImagePullJob],
		"nodeimages":                decoded[v1beta1.NodeImage],
		"podunavailablebudgets":     decoded[policyv1beta1.PodUnavailableBudget],
		"sidecarsets":               decoded[v1beta1.SidecarSet],
		"statefulsets":              decoded[v1beta1.StatefulSet],
		"uniteddeployments":         decoded[v1beta1.UnitedDeployment],
		"workloadspreads":           decoded[v1beta1.WorkloadSpread],
	}
}

func decoded[T any](raw *unstructured.Unstructured) []any {
	object, malformed, err := stored.Decode[T](raw)
	return []any{object, fmt.Sprint(malformed), fmt.Sprint(err), stored.Whole[T](raw)}
}

func packed(raw *unstructured.Unstructured) *unstructured.Unstructured {
	p := raw.DeepCopy()
	stored.Pack(p)
	return p
}

// What a reader gets of a packed object is what it gets of the object itself, well-formed or not.
func TestPackLaw(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	random, n := rand.New(rand.NewPCG(seed, 1)), 0
	for kind, decode := range decoders() {
		for _, step := range []string{"1-created", "3-updated"} {
			var list unstructured.UnstructuredList
			objects.Recorded(t, step+"/"+kind+".v1beta1.yaml", &list.Object)
			items, _, _ := unstructured.NestedSlice(list.Object, "items")
			for _, item := range items {
				raw := &unstructured.Unstructured{Object: normalised(t, item)}
				for range 5 {
					n++
					sameReadings(t, kind, decode, raw)
					all := paths(raw.Object, nil)
					for range 20 {
						sameField(t, kind, raw, all[random.IntN(len(all))])
					}
					disturb(random, raw.Object, 0)
				}
			}
		}
	}
	if n < 150 {
		t.Errorf("compared %d objects", n)
	}
}

// normalised returns an object with the types that decoders of API servers use.
func normalised(t *testing.T, item any) map[string]any {
	t.Helper()
	text, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	raw := &unstructured.Unstructured{}
	if err := raw.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return raw.Object
}

func sameReadings(
	t *testing.T, kind string, decode func(*unstructured.Unstructured) []any, raw *unstructured.Unstructured,
) {
	t.Helper()
	p := packed(raw)
	if want, got := decode(raw), decode(p.DeepCopy()); !reflect.DeepEqual(want, got) {
		t.Errorf("%s: decoded (-as it is +packed):\n%s", kind, cmp.Diff(want, got))
	}
	content, err := stored.Content(p)
	if err != nil || !reflect.DeepEqual(raw.Object, content) {
		t.Errorf("%s: content: %v (-as it is +packed):\n%s", kind, err, cmp.Diff(raw.Object, content))
	}
	again := p.DeepCopy()
	if stored.Pack(again); !reflect.DeepEqual(p.Object, again.Object) {
		t.Errorf("%s: packed twice is another object", kind)
	}
}

func sameField(t *testing.T, kind string, raw *unstructured.Unstructured, path []string) {
	t.Helper()
	want, has, err := unstructured.NestedFieldNoCopy(raw.Object, path...)
	got, found, failed := stored.Field(packed(raw), path...)
	if !reflect.DeepEqual(want, got) || has != found || (err == nil) != (failed == nil) {
		t.Errorf("%s: %v: got %v %v %v, want %v %v %v", kind, path, got, found, failed, want, has, err)
	}
}

// paths returns the paths of all fields, and of some that there are not.
func paths(object map[string]any, at []string) [][]string {
	all := [][]string{append(slices.Clone(at), "missing"), append(slices.Clone(at), "missing", "within")}
	for key, value := range object {
		below := append(slices.Clone(at), key)
		all = append(all, below, append(slices.Clone(below), "missing"))
		if fields, is := value.(map[string]any); is {
			all = append(all, paths(fields, below)...)
		}
	}
	return all
}

// disturb puts a value where another one was, anywhere below the object. Metadata stays, for what has none is no
// object.
func disturb(random *rand.Rand, object map[string]any, depth int) {
	values := []any{
		nil, "", "text <&> \u2028", int64(7), int64(1) << 40, 1.5, true,
		[]any{},
		[]any{map[string]any{}},
		map[string]any{},
		map[string]any{"name": "a"},
	}
	keys := slices.Sorted(maps.Keys(object))
	if depth == 0 {
		keys = slices.DeleteFunc(keys, func(key string) bool { return key != "spec" && key != "status" })
	}
	if len(keys) == 0 {
		return
	}
	key := keys[random.IntN(len(keys))]
	below := object[key]
	if list, is := below.([]any); is && len(list) > 0 {
		below = list[random.IntN(len(list))]
	}
	if fields, is := below.(map[string]any); is && len(fields) > 0 && random.IntN(8) > 0 {
		disturb(random, fields, depth+1)
		return
	}
	if depth > 0 {
		object[key] = values[random.IntN(len(values))]
	}
}

// A packed object that is sent is an error, and stores nothing.
func TestPackedIsNotEncoded(t *testing.T) {
	raw := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"replicas": int64(1)},
	}}
	if text, err := packed(raw).MarshalJSON(); err == nil {
		t.Errorf("encoded %s", text)
	}
}

func TestValue(t *testing.T) {
	raw := packed(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(3), "paused": true,
	}}})
	if n, is, err := stored.Value[int64](raw, "spec", "replicas"); n != 3 || !is || err != nil {
		t.Errorf("got %d, %v, %v", n, is, err)
	}
	if _, is, err := stored.Value[string](raw, "spec", "replicas"); is || err == nil {
		t.Errorf("a number is a text: %v, %v", is, err)
	}
	if _, is, err := stored.Value[string](raw, "spec", "missing"); is || err != nil {
		t.Errorf("got %v, %v", is, err)
	}
}

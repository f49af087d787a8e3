package write_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/write"
)

func podWith(uid string, labels map[string]string, finalizers ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID(uid), Labels: labels, Annotations: labels, Finalizers: finalizers,
	}}
}

// apply returns the pod after operations, and whether the API server accepts them.
func apply(t *testing.T, pod *corev1.Pod, ops []write.Op) (*corev1.Pod, bool) {
	t.Helper()
	data, err := write.Encode(ops)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := evanphx.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		return pod, false
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(after, next); err != nil {
		t.Fatal(err)
	}
	return next, true
}

func TestMetadataTests(t *testing.T) {
	cases := map[string]struct {
		read, now map[string]string
		want      bool
	}{
		"same: the value is the one that was read": {
			read: map[string]string{"k": "v"},
			now:  map[string]string{"k": "v", "x": "y"},
			want: true,
		},
		"changed: another value":           {map[string]string{"k": "v"}, map[string]string{"k": "w"}, false},
		"removed: no value":                {map[string]string{"k": "v"}, map[string]string{"x": "y"}, false},
		"empty: an empty value is a value": {map[string]string{"k": ""}, map[string]string{"x": "y"}, false},
		"absent: still absent":             {map[string]string{"x": "y"}, map[string]string{"x": "z"}, true},
		"another writer added it": {
			map[string]string{"x": "y"}, map[string]string{"x": "y", "k": "v"}, false,
		},
		"none: still none at all":                          {nil, nil, true},
		"first: another writer added the first":            {nil, map[string]string{"k": "v"}, false},
		"first else: a write of all of them would drop it": {nil, map[string]string{"x": "y"}, false},
	}
	for name, c := range cases {
		read, now := podWith("u", c.read), podWith("u", c.now)
		for field, op := range map[string]write.Op{
			"label": write.TestLabel(read, "k"), "annotation": write.TestAnnotation(read, "k"),
		} {
			if _, got := apply(t, now, []write.Op{op}); got != c.want {
				t.Errorf("%s of %s: got %v", name, field, got)
			}
		}
	}
	if _, ok := apply(t, podWith("u2", nil), write.TestUID(podWith("u", nil))); ok {
		t.Error("another object passes the test of the UID")
	}
	if ops := write.TestUID(podWith("", nil)); ops != nil {
		t.Errorf("an object without a UID is tested: %v", ops)
	}
}

func TestSetKeys(t *testing.T) {
	for name, have := range map[string]map[string]string{
		"none": nil, "some": {"keep": "1", "change": "1", "same": "1", "remove": "1"},
	} {
		pod := podWith("u", have)
		changed := map[string]*string{
			"change": ptr.To("2"), "same": ptr.To("1"), "remove": nil, "never": nil, "new/~": ptr.To("2"),
		}
		want := map[string]string{"change": "2", "same": "1", "new/~": "2"}
		if have != nil {
			want["keep"] = "1"
		}
		after, ok := apply(t, pod, append(write.SetLabels(pod, changed), write.SetAnnotations(pod, changed)...))
		if !ok || !maps.Equal(after.Labels, want) || !maps.Equal(after.Annotations, want) {
			t.Errorf("%s: %v %v %v", name, ok, after.Labels, after.Annotations)
		}
		if ops := write.SetLabels(after, changed); ops != nil {
			t.Errorf("%s: written twice: %v", name, ops)
		}
	}
	// What the first write creates must not replace the labels of another writer.
	if _, ok := apply(t, podWith("u", map[string]string{"x": "y"}),
		write.SetLabels(podWith("u", nil), map[string]*string{"k": ptr.To("v")})); ok {
		t.Error("the labels of another writer are replaced")
	}
}

func TestSetFinalizers(t *testing.T) {
	for name, c := range map[string]struct{ read, now, set []string }{
		"first":  {nil, nil, []string{"a"}},
		"more":   {[]string{"a"}, []string{"a"}, []string{"a", "b"}},
		"fewer":  {[]string{"a", "b"}, []string{"a", "b"}, []string{"b"}},
		"stale":  {[]string{"a"}, []string{"a", "c"}, []string{"a", "b"}},
		"stale0": {nil, []string{"c"}, []string{"a"}},
	} {
		after, ok := apply(t, podWith("u", nil, c.now...), write.SetFinalizers(podWith("u", nil, c.read...), c.set))
		if fresh := fmt.Sprint(c.read) == fmt.Sprint(c.now); ok != fresh ||
			fresh && fmt.Sprint(after.Finalizers) != fmt.Sprint(c.set) {
			t.Errorf("%s: %v %v", name, ok, after.Finalizers)
		}
	}
	if ops := write.SetFinalizers(podWith("u", nil, "a"), []string{"a"}); ops != nil {
		t.Errorf("nothing to write: %v", ops)
	}
}

func ExampleSetLabels() {
	pod := podWith("7", map[string]string{"app": "web", "old": "x"})
	value := "true"
	for _, op := range write.SetLabels(pod, map[string]*string{"old": nil, "new": &value, "app": &pod.Name}) {
		fmt.Println(op.Op, op.Path)
	}
	// Output:
	// add /metadata/labels/app
	// add /metadata/labels/new
	// remove /metadata/labels/old
}

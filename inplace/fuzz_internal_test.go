package inplace

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

func FuzzDecodeMetadata(f *testing.F) {
	f.Add(
		[]byte(`{"metadata":{"labels":{"a":null,"b":"c"},"annotations":{"x":"y"},"finalizers":["a/b"],"$deleteFromPrimitiveList/finalizers":["c/d"],"$setElementOrder/finalizers":["a/b"]}}`))
	f.Add([]byte(`{"metadata":null}`))
	f.Add([]byte(`{"metadata":{"labels":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMetadata(data)
		if err != nil {
			return
		}
		again, err := m.patch()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeMetadata(again)
		if err != nil {
			t.Fatal(err)
		}
		// Nothing and an empty map are the same.
		x, _ := json.Marshal([]any{
			len(m.Labels), m.Labels, len(m.Annotations), m.Annotations, m.AddFinalizers, m.RemoveFinalizers,
		})
		y, _ := json.Marshal([]any{
			len(back.Labels), back.Labels, len(back.Annotations), back.Annotations, back.AddFinalizers, back.RemoveFinalizers,
		})
		none := strings.NewReplacer("{}", "null", "[]", "null")
		if none.Replace(string(x)) != none.Replace(string(y)) {
			t.Errorf("%s\nwritten %s\nread    %s", data, x, y)
		}
	})
}

func FuzzParseField(f *testing.F) {
	for _, s := range []string{
		"", "metadata.labels['a']", "metadata.annotations['b/c']", "metadata.labels", "metadata.labels['",
		"metadata.labels['']", "status.podIP",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, ok := parseField(path)
		field := "annotations"
		if got.label {
			field = "labels"
		}
		if ok != (path == "metadata."+field+"['"+got.key+"']") {
			t.Errorf("%q: %v, %v", path, got, ok)
		}
	})
}

func FuzzPriority(f *testing.F) {
	for i, s := range []string{"", "p_1", "p_-3", "p_", "p", "7", "p_p_1", "p_99999999999999999999", "p_+1"} {
		f.Add(s, i-4)
	}
	f.Fuzz(func(t *testing.T, key string, n int) {
		barrier := func(key string) *corev1.Container {
			return &corev1.Container{Env: []corev1.EnvVar{
				{Name: "OTHER"}, {Name: kruise.ContainerLaunchBarrierEnvName, ValueFrom: &corev1.EnvVarSource{
					ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: key},
				}},
			}}
		}
		if _, ok := LaunchPriority(barrier(key), nil); !ok {
			t.Errorf("%q is no barrier", key)
		}
		if got, ok := LaunchPriority(barrier(kruise.ContainerLaunchBarrierKeyPrefix+strconv.Itoa(n)), nil); !ok || got != n {
			t.Errorf("want %d, got %d", n, got)
		}
	})
}

package controllers

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/objects"
)

// heap returns the bytes that are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// held returns the bytes that each of some objects takes as the cache keeps it.
func held(t testing.TB, many int, transform func(any) (any, error), next func() any) uint64 {
	t.Helper()
	all := make([]any, many)
	before := heap()
	for i := range all {
		kept, err := transform(next())
		if err != nil {
			t.Fatal(err)
		}
		all[i] = kept
	}
	each := (heap() - before) / uint64(many)
	runtime.KeepAlive(all)
	return each
}

// transformOf returns the transform of the manager's cache for the objects of a kind.
func transformOf(t testing.TB, like client.Object) func(any) (any, error) {
	t.Helper()
	o, err := ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	for object, by := range o.Cache.ByObject {
		if fmt.Sprintf("%T", object) == fmt.Sprintf("%T", like) && by.Transform != nil {
			return by.Transform
		}
	}
	return o.Cache.DefaultTransform
}

// manyVariables returns entries of an environment that are 1.4 MB in all: of what an object can have, these take the
// most memory.
func manyVariables() string {
	var env strings.Builder
	for n := 0; env.Len() < 1_400_000; n++ {
		fmt.Fprintf(&env, `{"name":"A%x"},`, n)
	}
	return strings.TrimSuffix(env.String(), ",")
}

// An untyped object of our kinds takes the memory of its text, whatever part of it is large.
func TestCachedSizeOfUntypedObjects(t *testing.T) {
	template := `{"spec":{"containers":[{"name":"a","image":"b","env":[` + manyVariables() + `]}]}}`
	cases := map[string]struct{ why, kind, spec string }{
		"CloneSet": {
			"one object of replicas 0 took 30 MiB", "CloneSet", `{"replicas":0,"template":` + template + `}`,
		},
		"SidecarSet": {
			"its containers are no template", "SidecarSet", `{"containers":[{"name":"a","env":[` + manyVariables() + `]}]}`,
		},
		"UnitedDeployment": {
			"a template within a template", "UnitedDeployment",
			`{"template":{"cloneSetTemplate":{"spec":{"template":` + template + `}}}}`,
		},
		"PodUnavailableBudget": {
			"a selector", "PodUnavailableBudget",
			`{"selector":{"matchExpressions":[{"key":"a","operator":"In","values":[` + strings.Repeat(`"b",`, 300_000) +
				`"c"]}]}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			group := "apps"
			if c.kind == "PodUnavailableBudget" {
				group = "policy"
			}
			text := fmt.Sprintf(
				`{"apiVersion":"%s.kruise.io/v1beta1","kind":%q,"metadata":{"name":"a","namespace":"b"},"spec":%s}`,
				group, c.kind, c.spec)
			each := held(t, 4, cacheTransform(t), func() any { return untyped(t, text) })
			runtime.KeepAlive([]string{template, text, c.spec})
			t.Logf("%d KiB are %d KiB in the cache", len(text)>>10, each>>10)
			if each > uint64(len(text))*12/10 {
				t.Errorf("%s: %d KiB of text are %d KiB in the cache", c.why, len(text)>>10, each>>10)
			}
		})
	}
}

func cacheTransform(t testing.TB) func(any) (any, error) {
	t.Helper()
	o, err := ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	return o.Cache.DefaultTransform
}

func untyped(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw := &unstructured.Unstructured{}
	if err := raw.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return raw
}

// The variables, arguments and volumes of a pod take no memory.
func TestCachedSizeOfPods(t *testing.T) {
	text := `{"metadata":{"name":"a","namespace":"b"},"spec":{"containers":[{"name":"a","image":"b","args":["` +
		strings.Repeat("y", 500<<10) + `"],"env":[` +
		manyVariables() + `]}]}}`
	each := held(t, 4, transformOf(t, &corev1.Pod{}), func() any { return typedPod(t, text) })
	runtime.KeepAlive(text)
	t.Logf("a pod of %d KiB is %d KiB in the cache", len(text)>>10, each>>10)
	if each > 128<<10 {
		t.Errorf("a pod of %d KiB is %d KiB in the cache", len(text)>>10, each>>10)
	}
}

func typedPod(t testing.TB, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// Recorded objects of all kinds take little more memory than their text. Without a transform they take four times of
// it.
func TestCachedSizeOfRecordedObjects(t *testing.T) {
	for _, kind := range []string{
		"clonesets", "statefulsets", "daemonsets", "sidecarsets", "uniteddeployments", "workloadspreads",
	} {
		var list unstructured.UnstructuredList
		objects.Recorded(t, "2-updating/"+kind+".v1beta1.yaml", &list.Object)
		items, _, _ := unstructured.NestedSlice(list.Object, "items")
		text, err := json.Marshal(items[0])
		if err != nil {
			t.Fatal(err)
		}
		next := func() any { return untyped(t, string(text)) }
		before, after := held(t, 200, cache.TransformStripManagedFields(), next), held(t, 200, cacheTransform(t), next)
		t.Logf("%s: %d bytes of text with managedFields, %d in the cache, %d without the transform",
			kind, len(text), after, before)
		if after*2 > before {
			t.Errorf("%s: %d bytes in the cache, %d without the transform", kind, after, before)
		}
	}
}

// Package storedtest makes the untyped objects of a cache for tests.
package storedtest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// Raw returns a typed object as the cache of the manager has it, untyped and packed.
func Raw(t testing.TB, gvk schema.GroupVersionKind, object client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	raw := &unstructured.Unstructured{Object: content}
	raw.SetGroupVersionKind(gvk)
	stored.Pack(raw)
	return raw
}

package stored_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// reader answers with an error, or with an object named by its key.
type reader struct {
	client.Reader

	err error
}

func (r reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetName(key.Name)
	return r.err
}

func (r reader) List(_ context.Context, into client.ObjectList, o ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(o)
	if options.UnsafeDisableDeepCopy == nil || !*options.UnsafeDisableDeepCopy {
		return errors.New("the objects are copied")
	}
	list := into.(*unstructured.UnstructuredList)
	if list.GetKind() != "PodList" {
		return errors.New("another kind")
	}
	list.Items = make([]unstructured.Unstructured, 2)
	return r.err
}

func TestFind(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web")
	name, gvk := types.NamespacedName{Name: "web"}, corev1.SchemeGroupVersion.WithKind("Pod")
	for why, c := range map[string]struct {
		err          error
		found, fails bool
	}{
		"it exists":         {nil, true, false},
		"it does not exist": {missing, false, false},
		"unknown":           {errors.New("unavailable"), false, true},
	} {
		t.Run(why, func(t *testing.T) {
			pod, err := stored.Find[corev1.Pod](t.Context(), reader{err: c.err}, name)
			if (pod != nil) != c.found || (err != nil) != c.fails || pod != nil && pod.Name != "web" {
				t.Errorf("got %v, %v", pod, err)
			}
			meta, err := stored.Metadata(t.Context(), reader{err: c.err}, gvk, name)
			if (meta != nil) != c.found || (err != nil) != c.fails || meta != nil && meta.GroupVersionKind() != gvk {
				t.Errorf("got %v, %v", meta, err)
			}
			if all, err := stored.List(t.Context(), reader{err: c.err}, gvk); (err != nil) != (c.err != nil) ||
				err == nil && len(all) != 2 {
				t.Errorf("got %d, %v", len(all), err)
			}
		})
	}
}

func TestMemo(t *testing.T) {
	raw := func(version string, spec any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "web", "uid": "u", "resourceVersion": version}, "spec": spec,
		}}
	}
	spec := map[string]any{"replicas": int64(2)}
	var memo stored.Memo[v1beta1.CloneSet, *v1beta1.CloneSet]
	first := memo.Decode(raw("1", spec))
	if first == nil || *first.Spec.Replicas != 2 || memo.Decode(raw("1", "is not decoded again")) != first {
		t.Errorf("got %v", first)
	}
	if second := memo.Decode(raw("2", spec)); second == nil || second == first {
		t.Errorf("another version is the first one: %v", second)
	}
	if memo.Decode(raw("3", "malformed")) != nil || memo.Decode(&corev1.Pod{}) != nil {
		t.Error("what cannot be decoded was decoded")
	}
	if kept := memo.Decode(raw("2", "known")); kept == nil {
		t.Error("the last version is not known")
	}
	memo.Forget(types.NamespacedName{Name: "web"})
	if memo.Decode(raw("2", "malformed")) != nil {
		t.Error("a forgotten object is known")
	}
}

// The API server takes times that Go does not. Such an object is left out, and no other one with it.
func TestMemoOfMalformedTimes(t *testing.T) {
	node := func(version, created string) *unstructured.Unstructured {
		raw := stored.Untyped(v1beta1.GroupVersion.WithKind("NodeImage"))
		raw.SetName("node-1")
		raw.SetUID("u1")
		raw.SetResourceVersion(version)
		raw.Object["spec"] = map[string]any{"images": map[string]any{"nginx": map[string]any{
			"tags": []any{map[string]any{"tag": "1", "createdAt": created}},
		}}}
		return raw
	}
	var memo stored.Memo[v1beta1.NodeImage, *v1beta1.NodeImage]
	first := memo.Decode(node("1", "2026-01-01T00:00:00Z"))
	if first == nil || len(first.Spec.Images["nginx"].Tags) != 1 {
		t.Fatalf("decoded %+v", first)
	}
	if bad := memo.Decode(node("2", "2026-01-01t00:00:00z")); bad != nil {
		t.Errorf("decoded %+v", bad)
	}
	if mended := memo.Decode(node("3", "2026-01-02T00:00:00Z")); mended == nil || mended == first ||
		mended.ResourceVersion != "3" {
		t.Errorf("decoded %+v", mended)
	}
}

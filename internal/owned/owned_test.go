package owned_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kruisekit/kruisekit/internal/owned"
)

// Several controllers of one manager look for the pods they own: each asks for the index.
func TestIndexTwice(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	// Nobody listens there, and the cache is not started.
	c, err := cache.New(&rest.Config{Host: "http://127.0.0.1:1"}, cache.Options{Scheme: scheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := owned.Index(t.Context(), c, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRelease(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", UID: "claim"}}
	pod := &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "web-1", UID: "pod"}
	cases := map[string]struct {
		why  string
		to   []*metav1.OwnerReference
		want string
	}{
		"released":    {"only this owner is removed, and only of the object that was observed", nil, `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"set"}],"uid":"claim"}}`},
		"handed over": {"the other owner comes in the same write", []*metav1.OwnerReference{pod}, `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"set"},{"apiVersion":"v1","kind":"Pod","name":"web-1","uid":"pod"}],"uid":"claim"}}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := owned.Release(claim, "set", c.to...)
			data, err := w.Data()
			if err != nil || string(data) != c.want || w.Type != types.StrategicMergePatchType {
				t.Errorf("%s: %s of type %s, %v, want %s", c.why, data, w.Type, err, c.want)
			}
		})
	}
}

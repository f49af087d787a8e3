package owned_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// Several controllers of one manager look for the pods they own: each asks for the index.
func TestIndexTwice(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	// No server listens there, and the cache is not started.
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
		"released": {
			"only this owner is removed, and only of the object that was observed", nil,
			`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"set"}],"uid":"claim"}}`,
		},
		"handed over": {
			"the other owner comes in the same write",
			[]*metav1.OwnerReference{pod},
			`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"set"},{"apiVersion":"v1","kind":"Pod","name":"web-1","uid":"pod"}],"uid":"claim"}}`,
		},
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

func TestRefer(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", UID: "claim"}}
	w := owned.Refer(claim, nil, &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "web-1", UID: "pod"})
	const want = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"web-1","uid":"pod"}],"uid":"claim"}}`
	if data, err := w.Data(); err != nil || string(data) != want {
		t.Errorf("an owner is added, and none removed: %s, %v, want %s", data, err, want)
	}
}

// A pod without a controller is found by the workload that its name refers to, and a controlled one is not.
func TestOrphans(t *testing.T) {
	stem := func(name string) (string, bool) {
		set, _, ok := ordinals.Split(name)
		return set, ok
	}
	controlled := []metav1.OwnerReference{{UID: "set", Controller: ptr.To(true)}}
	cases := map[string]struct {
		why  string
		pod  metav1.ObjectMeta
		want []string
	}{
		"orphan":      {"the name is that of a pod of web", metav1.ObjectMeta{Name: "web-3"}, []string{"web"}},
		"controlled":  {"another workload has the pod", metav1.ObjectMeta{Name: "web-3", OwnerReferences: controlled}, nil},
		"no workload": {"no workload has pods of this name", metav1.ObjectMeta{Name: "web"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := owned.OrphanKeys(&corev1.Pod{ObjectMeta: c.pod}, stem); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.why, got, c.want)
			}
		})
	}
}

// recorded records the requests of a queue with the pauses before them.
type recorded struct {
	watches.Queue

	all map[string][]time.Duration
}

func (r recorded) Add(q reconcile.Request) { r.AddAfter(q, 0) }

func (r recorded) AddAfter(q reconcile.Request, after time.Duration) {
	r.all[q.String()] = append(r.all[q.String()], after)
}

func TestByAfter(t *testing.T) {
	of := func(kind, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", ResourceVersion: name, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: kind, Name: name, Controller: ptr.To(true),
			}},
		}}
	}
	handler := owned.ByAfter("apps.kruise.io", "CloneSet", func(owner types.NamespacedName) time.Duration {
		if owner.Name == "large" {
			return time.Second
		}
		return 0
	})
	q := recorded{all: map[string][]time.Duration{}}
	handler.Create(t.Context(), event.CreateEvent{Object: of("CloneSet", "large")}, q)
	handler.Update(t.Context(), event.UpdateEvent{
		ObjectOld: of("CloneSet", "large"), ObjectNew: of("CloneSet", "small"),
	}, q)
	handler.Delete(t.Context(), event.DeleteEvent{Object: of("StatefulSet", "large")}, q)
	want := map[string][]time.Duration{"shop/large": {time.Second, time.Second}, "shop/small": {0}}
	if diff := cmp.Diff(want, q.all); diff != "" {
		t.Errorf("requests and their pauses (-want +got):\n%s", diff)
	}
}

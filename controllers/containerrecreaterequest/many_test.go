package containerrecreaterequest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// requests is a cache of requests of one pod.
type requests struct {
	client.Client
	all []unstructured.Unstructured
}

func (r *requests) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*unstructured.UnstructuredList).Items = slices.Clone(r.all)
	return nil
}

func requestsOf(t *testing.T, pod string, n int) *requests {
	t.Helper()
	r := &requests{}
	for i := range n {
		one := &request{ObjectMeta: metav1.ObjectMeta{
			Namespace:         "shop",
			Name:              fmt.Sprintf("r%04d", n-i),
			ResourceVersion:   "1",
			CreationTimestamp: metav1.Unix(int64(i), 0),
			Labels:            map[string]string{v1beta1.ContainerRecreateRequestPodUIDKey: pod},
		}}
		one.SetGroupVersionKind(gvk())
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
		if err != nil {
			t.Fatal(err)
		}
		r.all = append(r.all, unstructured.Unstructured{Object: content})
	}
	return r
}

// A change of a pod is for the request that runs, and the end of a request for the one that runs next: a thousand
// requests of one pod would otherwise look at each other a million times. What is over for all wakes all.
func TestManyRequestsOfOnePod(t *testing.T) {
	const n = 50
	cached := requestsOf(t, "p1", n)
	api, err := binding.New("test", cached, binding.Options{Now: func() time.Time { return time.Unix(100, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{api: api}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "p1"}}
	gone := pod.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{}
	other := pod.DeepCopy()
	other.UID = "p2"
	for name, test := range map[string]struct {
		tell func(q watches.Queue)
		want int
	}{
		"a container that is ready matters to the first": {func(q watches.Queue) {
			r.aboutPod().Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, q)
		}, 1},
		"a pod that terminates ends all": {func(q watches.Queue) {
			r.aboutPod().Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: gone}, q)
		}, n},
		"so does another pod in its place": {func(q watches.Queue) {
			r.aboutPod().Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: other}, q)
		}, n},
		"and a pod that is gone": {func(q watches.Queue) {
			r.aboutPod().Delete(t.Context(), event.DeleteEvent{Object: pod}, q)
		}, n},
		"the end of a request matters to the next": {func(q watches.Queue) {
			for _, name := range r.besides(t.Context(), &cached.all[7]) {
				q.Add(name)
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			test.tell(q)
			if q.Len() != test.want {
				t.Fatalf("%d requests are woken, want %d", q.Len(), test.want)
			}
			if first, _ := q.Get(); test.want == 1 && first.Name != fmt.Sprintf("r%04d", n) {
				t.Errorf("%s is woken, which is not the first", first.Name)
			}
		})
	}
	before, err := r.ofPod(t.Context(), "shop", "p1")
	if err != nil {
		t.Fatal(err)
	}
	after, err := r.ofPod(t.Context(), "shop", "p1")
	if err != nil || len(after) != n || !slices.Equal(before, after) {
		t.Errorf("requests that have not changed are decoded again: %v", err)
	}
}

package binding_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/binding"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// priorities records with which priority requests are added.
type priorities struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	added []string
}

func (p *priorities) Add(q reconcile.Request) { p.AddWithOpts(priorityqueue.AddOpts{}, q) }

func (p *priorities) AddWithOpts(o priorityqueue.AddOpts, all ...reconcile.Request) {
	for _, q := range all {
		p.added = append(p.added, fmt.Sprintf("%s %d", q.Name, ptr.Deref(o.Priority, 0)))
	}
}

// A direct handler adds the requests that handler.Funcs adds, with the same priorities.
func TestDirect(t *testing.T) {
	add := func(q queue, o client.Object) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	funcs := handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			add(q, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			add(q, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			add(q, e.Object)
		},
	}
	pod := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: version}}
	}
	run := func(h handler.EventHandler) string {
		q := &priorities{}
		h.Create(t.Context(), event.CreateEvent{Object: pod("1")}, q)
		h.Create(t.Context(), event.CreateEvent{Object: pod("1"), IsInInitialList: true}, q)
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: pod("1"), ObjectNew: pod("2")}, q)
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: pod("2"), ObjectNew: pod("2")}, q)
		h.Delete(t.Context(), event.DeleteEvent{Object: pod("2")}, q)
		h.Generic(t.Context(), event.GenericEvent{Object: pod("2")}, q)
		return fmt.Sprint(q.added)
	}
	if got, want := run(binding.Direct(funcs)), run(funcs); got != want || got != "[a 0 a -100 a 0 a -100 a 0]" {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := run(binding.Direct(handler.Funcs{})); got != "[]" {
		t.Errorf("without functions: %s", got)
	}
}

package containerrecreaterequest

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/internal/watches"

	"github.com/kruisekit/kruisekit/internal/binding"
)

// byPod is the index of the requests that are not over by the UID of their pod. Pods change often, and most have none.
const byPod = "kruisekit.dev/pod-uid"

// indexed is where a request is in the index.
func indexed(o client.Object) []string {
	r := requestOf(o)
	if r == nil || over(r) {
		return nil
	}
	return []string{r.Labels[v1beta1.ContainerRecreateRequestPodUIDKey]}
}

// requestOf is the request of an event; nil for none.
func requestOf(o client.Object) *request {
	raw, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	r, _, err := decode(raw)
	if err != nil {
		return nil
	}
	return r
}

// aboutPod wakes the request of a pod that runs, and all requests of a pod that is gone, or about to be: those that
// wait look at nothing else of the pod.
func (r *Reconciler) aboutPod() handler.EventHandler {
	wake := func(ctx context.Context, pod client.Object, q watches.Queue, all bool) {
		names := r.enqueue(ctx, pod.GetNamespace(), string(pod.GetUID()))
		if !all {
			names = names[:min(len(names), 1)]
		}
		for _, name := range names {
			q.Add(name)
		}
	}
	return binding.Direct(handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watches.Queue) {
			wake(ctx, e.Object, q, e.Object.GetDeletionTimestamp() != nil)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watches.Queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				wake(ctx, e.ObjectOld, q, true)
			}
			wake(ctx, e.ObjectNew, q, e.ObjectNew.GetDeletionTimestamp() != nil)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watches.Queue) { wake(ctx, e.Object, q, true) },
	})
}

// besides returns the request of the same pod that runs next.
func (r *Reconciler) besides(ctx context.Context, o client.Object) []reconcile.Request {
	names := r.enqueue(ctx, o.GetNamespace(), o.GetLabels()[v1beta1.ContainerRecreateRequestPodUIDKey])
	return names[:min(len(names), 1)]
}

// enqueue returns the requests of a pod, in the order in which they run.
func (r *Reconciler) enqueue(ctx context.Context, namespace, uid string) []reconcile.Request {
	all, err := r.ofPod(ctx, namespace, uid)
	if err != nil {
		log.FromContext(ctx).Error(err, "Requests of a pod are not looked at now", "podUID", uid)
		return nil
	}
	names := make([]reconcile.Request, 0, len(all))
	for _, one := range containerrestart.Queue(types.UID(uid), all) {
		names = append(names, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(one)})
	}
	return names
}

// ends are the events by which a request makes room for others.
func ends() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := requestOf(e.ObjectOld), requestOf(e.ObjectNew)
			return was != nil && is != nil && !over(was) && over(is)
		},
	}
}

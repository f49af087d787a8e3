package containerrecreaterequest

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
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

// about are the requests of a pod.
func (r *Reconciler) about(ctx context.Context, pod client.Object) []reconcile.Request {
	return r.enqueue(ctx, pod.GetNamespace(), string(pod.GetUID()))
}

// besides are the other requests of a request's pod.
func (r *Reconciler) besides(ctx context.Context, o client.Object) []reconcile.Request {
	return r.enqueue(ctx, o.GetNamespace(), o.GetLabels()[v1beta1.ContainerRecreateRequestPodUIDKey])
}

func (r *Reconciler) enqueue(ctx context.Context, namespace, uid string) []reconcile.Request {
	all, err := r.ofPod(ctx, namespace, uid)
	if err != nil {
		log.FromContext(ctx).Error(err, "Requests of a pod are not looked at now", "podUID", uid)
		return nil
	}
	names := make([]reconcile.Request, 0, len(all))
	for _, one := range all {
		names = append(names, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(one)})
	}
	return names
}

// ends are the events by which a request makes room for others.
func ends() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := requestOf(e.ObjectOld), requestOf(e.ObjectNew)
			return was != nil && is != nil && !over(was) && over(is)
		},
	}
}

// podEvents are the events of pods that a request looks at.
func podEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, isPod := e.ObjectOld.(*corev1.Pod)
		is, isToo := e.ObjectNew.(*corev1.Pod)
		if !isPod || !isToo {
			return true
		}
		return was.UID != is.UID || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
			!slices.EqualFunc(was.Status.ContainerStatuses, is.Status.ContainerStatuses, alike) ||
			!slices.EqualFunc(was.Status.InitContainerStatuses, is.Status.InitContainerStatuses, alike)
	}}
}

// alike compares what requests tell of a container.
func alike(a, b corev1.ContainerStatus) bool {
	if a.Name != b.Name || a.Ready != b.Ready || a.RestartCount != b.RestartCount || a.ContainerID != b.ContainerID {
		return false
	}
	if a.State.Running == nil || b.State.Running == nil {
		return a.State.Running == b.State.Running
	}
	return a.State.Running.StartedAt.Equal(&b.State.Running.StartedAt)
}

package nodepodprobe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// gather is how long other pods of a node are waited for, so that pods that start together cost one write.
const gather = 200 * time.Millisecond

func requestOf(node string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}
}

// nodeEvents are all but the updates of a node that say nothing to its NodePodProbe, such as heartbeats.
func nodeEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, isNode := e.ObjectOld.(*corev1.Node)
		is, isToo := e.ObjectNew.(*corev1.Node)
		return !isNode || !isToo || was.UID != is.UID || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
			isReady(was) != isReady(is) || podprobe.IsVirtual(was) != podprobe.IsVirtual(is)
	}}
}

// podEvents requeue the node of a pod that a marker selects, or selected, when what is probed may change.
func (r *Reconciler) podEvents() handler.EventHandler {
	return r.markers.PodEvents(nil, func(q watches.Queue, pod *corev1.Pod, _ []*v1alpha1.PodProbeMarker) {
		if pod.Spec.NodeName != "" {
			q.AddAfter(requestOf(pod.Spec.NodeName), gather)
		}
	})
}

// markerEvents wake the nodes of the pods that a marker selects, and those that run its probes.
func (r *Reconciler) markerEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watches.Queue) {
			if !e.IsInInitialList {
				r.wakeNodes(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watches.Queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) {
				r.wakeNodes(ctx, q, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watches.Queue) {
			r.wakeNodes(ctx, q, e.Object)
			r.markers.Forget(client.ObjectKeyFromObject(e.Object))
		},
	}
}

func (r *Reconciler) wakeNodes(ctx context.Context, q watches.Queue, o client.Object) {
	nodes, err := stored.List(ctx, r.api.Cached, markers.NodeGVK(), client.MatchingFields{
		markers.ProbedField: markers.Key(o.GetNamespace(), o.GetName()),
	})
	for _, probes := range nodes {
		q.AddAfter(requestOf(probes.GetName()), gather)
	}
	if marker := r.markers.Of(o); marker != nil && err == nil {
		var pods corev1.PodList
		err = r.api.Client.List(ctx, &pods, client.InNamespace(marker.Namespace),
			client.MatchingLabelsSelector{Selector: podprobe.Selector(marker)}, client.UnsafeDisableDeepCopy)
		for i := range pods.Items {
			if podprobe.IsProbed(&pods.Items[i]) {
				q.AddAfter(requestOf(pods.Items[i].Spec.NodeName), gather)
			}
		}
	}
	watches.Log(ctx, err, "Failed to find the nodes of a marker")
}

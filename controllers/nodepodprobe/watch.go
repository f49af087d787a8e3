package nodepodprobe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

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

// podEvents wake the node of a pod that a marker selects, or selected, when what is probed may change. When the process
// starts, all nodes are looked at anyway.
func (r *Reconciler) podEvents() handler.EventHandler {
	return watches.Direct(handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if pod, ok := e.Object.(*corev1.Pod); ok && !e.IsInInitialList && podprobe.IsProbed(pod) {
				r.wake(ctx, q, pod)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			was, wasPod := e.ObjectOld.(*corev1.Pod)
			is, isPod := e.ObjectNew.(*corev1.Pod)
			if wasPod && isPod && (markers.PodChanged(was, is) || r.isReselected(ctx, was, is)) {
				r.wake(ctx, q, was, is)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				r.wake(ctx, q, pod)
			}
		},
	})
}

// isReselected reports whether other markers select a pod. Where that is unknown, wake reports it.
func (r *Reconciler) isReselected(ctx context.Context, was, is *corev1.Pod) bool {
	other, err := r.markers.Reselected(ctx, was, is)
	return other || err != nil
}

func (r *Reconciler) wake(ctx context.Context, q queue, states ...*corev1.Pod) {
	node := states[len(states)-1].Spec.NodeName
	if node == "" {
		return
	}
	for _, pod := range states {
		selecting, err := r.markers.Selecting(ctx, pod)
		if err != nil {
			log.FromContext(ctx).Error(err, "Looked at the node of a pod whose markers are unknown",
				"pod", client.ObjectKeyFromObject(pod))
		}
		if err != nil || len(selecting) > 0 {
			q.AddAfter(requestOf(node), gather)
			return
		}
	}
}

// markerEvents wake the nodes of the pods that a marker selects, and those that run its probes.
func (r *Reconciler) markerEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				r.wakeNodes(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) {
				r.wakeNodes(ctx, q, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.wakeNodes(ctx, q, e.Object)
			r.markers.Forget(client.ObjectKeyFromObject(e.Object))
		},
	}
}

func (r *Reconciler) wakeNodes(ctx context.Context, q queue, o client.Object) {
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
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Nodes of a marker not found", "marker", client.ObjectKeyFromObject(o))
	}
}

package podprobemarker

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/watches"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// gather is how long other pods are waited for: a rollout costs a marker one pass in a second, and not one for each
// pod.
const gather = time.Second

// podEvents wake the markers that select a pod, or selected it. When the process starts, all markers are looked at
// anyway.
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
			if !wasPod || !isPod {
				return
			}
			reported := r.options.Serverless && podprobe.IsProbed(is) && conditionsChanged(was, is)
			if reported || markers.PodChanged(was, is) || r.isReselected(ctx, was, is) {
				r.wake(ctx, q, was, is)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if pod, ok := e.Object.(*corev1.Pod); ok && podprobe.IsProbed(pod) {
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

// conditionsChanged reports whether a condition that a provider may have written is new, or has another status.
func conditionsChanged(was, is *corev1.Pod) bool {
	return slices.ContainsFunc(is.Status.Conditions, func(c corev1.PodCondition) bool {
		return !podprobe.IsReserved(string(c.Type)) &&
			!slices.ContainsFunc(was.Status.Conditions, func(old corev1.PodCondition) bool {
				return old.Type == c.Type && old.Status == c.Status
			})
	})
}

func (r *Reconciler) wake(ctx context.Context, q queue, states ...*corev1.Pod) {
	for _, pod := range states {
		selecting, err := r.markers.Selecting(ctx, pod)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Markers of a pod not found", "pod", client.ObjectKeyFromObject(pod))
		}
		for _, m := range selecting {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}, gather)
		}
	}
}

// probeEvents wake markers that are being deleted, when a node does not run their probes any more.
func (r *Reconciler) probeEvents() handler.EventHandler {
	gone := func(ctx context.Context, q queue, was, is client.Object) {
		var kept []string
		if is != nil {
			kept = markers.ProbedOf(is)
		}
		for _, key := range markers.ProbedOf(was) {
			if !slices.Contains(kept, key) {
				r.wakeDeleted(ctx, q, key)
			}
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				gone(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { gone(ctx, q, e.Object, nil) },
	}
}

func (r *Reconciler) wakeDeleted(ctx context.Context, q queue, key string) {
	namespace, name := markers.Split(key)
	all, err := r.markers.In(ctx, namespace)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Markers of a namespace not found", "namespace", namespace)
	}
	if slices.ContainsFunc(all, func(m *v1alpha1.PodProbeMarker) bool {
		return m.Name == name && m.DeletionTimestamp == nil
	}) {
		return
	}
	q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
}

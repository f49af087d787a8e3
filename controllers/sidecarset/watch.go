package sidecarset

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// podField is the name of the index of pods by the sets that they name.
const podField = "kruisekit.dev/sidecarset"

func setsOf(o client.Object) []string {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	return rollout.Sets(pod)
}

// setEvents selects the events of sets except updates that change no plan, such as those of the status.
func setEvents() predicate.Predicate {
	return watches.Decisive(func(before, after *unstructured.Unstructured) bool {
		was, is := before.GetAnnotations(), after.GetAnnotations()
		return was[kruise.SidecarSetHashKey] != is[kruise.SidecarSetHashKey] ||
			was[kruise.SidecarSetHashWithoutImageKey] != is[kruise.SidecarSetHashWithoutImageKey]
	})
}

// podEvents enqueues the sets that a pod records. When the process starts, all sets are reconciled anyway.
func (r *Reconciler) podEvents() handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q watches.Queue, before, after *corev1.Pod) {
		switch {
		case after == nil:
			r.wake(ctx, q, before, rollout.Sets(before))
		case before == nil:
			for _, name := range rollout.Sets(after) {
				if r.counts(ctx, name) {
					q.AddAfter(request(name), max(newcomers, r.pause(name)))
				}
			}
		case rollout.Matters(before, after):
			r.wake(ctx, q, after, append(rollout.Sets(before), rollout.Sets(after)...))
		}
	})
}

// counts reports whether a set counts a new pod: the set exists. A set that comes later looks for its pods itself. When
// in doubt it counts.
func (r *Reconciler) counts(ctx context.Context, name string) bool {
	err := r.api.Cached.Get(ctx, types.NamespacedName{Name: name}, stored.Untyped(gvk()), client.UnsafeDisableDeepCopy)
	return !apierrors.IsNotFound(err)
}

// wake enqueues sets after a change of a pod. Sets that update no running pods ignore it, unless they are refreshed.
func (r *Reconciler) wake(ctx context.Context, q watches.Queue, pod *corev1.Pod, names []string) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if r.looksAt(ctx, name, pod) {
			q.AddAfter(request(name), r.pause(name))
		}
	}
}

// looksAt reports whether changes of a pod concern a set: the set updates pods, or has an unfinished hot upgrade. When
// in doubt they do.
func (r *Reconciler) looksAt(ctx context.Context, name string, pod *corev1.Pod) bool {
	raw := stored.Untyped(gvk())
	if err := r.api.Cached.Get(ctx, types.NamespacedName{Name: name}, raw, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err) != nil
	}
	if r.options.RefreshNotUpdate {
		return true
	}
	if t, _, err := stored.Value[string](raw, "spec", "updateStrategy", "type"); err != nil ||
		t != string(v1beta1.NotUpdateSidecarSetStrategyType) {
		return true
	}
	if pod.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey] == "" {
		return false
	}
	set, malformed, err := stored.Decode[v1beta1.SidecarSet](raw)
	return err == nil && malformed == nil && rollout.Switching(set, pod)
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// namespaceEvents enqueues the sets that select namespaces when the labels of a namespace change.
func (r *Reconciler) namespaceEvents() (handler.EventHandler, predicate.Predicate) {
	relabelled := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) },
	}
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		all, err := stored.List(ctx, r.api.Cached, gvk())
		if err != nil {
			log.FromContext(ctx).Error(err, "Skipped the sets of a namespace that has other labels")
			return nil
		}
		var requests []reconcile.Request
		for _, raw := range all {
			if s, _, _ := stored.Value[map[string]any](raw, "spec", "namespaceSelector"); s != nil {
				requests = append(requests, request(raw.GetName()))
			}
		}
		return requests
	}), relabelled
}

const (
	pauses        = 5
	shortestPause = 50 * time.Millisecond
	longestPause  = time.Second
	// newcomers is the pause for new pods. They are created by hundreds, need no update, and are only counted.
	newcomers = 500 * time.Millisecond
)

// pause returns how long to wait for more changes of pods before a set is reconciled again. In a set of thousands,
// whose pods change all the time while they are updated, the pause keeps passes to a small part of the time.
func (r *Reconciler) pause(name string) time.Duration {
	return min(max(pauses*r.memory.Recall(name).took, shortestPause), longestPause)
}

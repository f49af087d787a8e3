package persistentpodstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// together is how long events are gathered, so that pods that become ready together cost one write.
const together = time.Second

func later(q watches.Queue, all []types.NamespacedName) {
	for _, name := range all {
		q.AddAfter(ctrl.Request{NamespacedName: name}, together)
	}
}

func requestOf(o client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// isOther reports whether the spec or the annotations of an object have changed.
func isOther(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// stateEvents reconciles a PersistentPodState at once where its spec or its annotations have changed.
func (r *Reconciler) stateEvents() handler.EventHandler {
	put := func(o client.Object) {
		if raw, ok := o.(*unstructured.Unstructured); ok {
			_ = r.index.Put(raw) // the pass reports what cannot be decoded
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watches.Queue) {
			put(e.Object)
			q.Add(requestOf(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watches.Queue) {
			put(e.ObjectNew)
			if isOther(e.ObjectOld, e.ObjectNew) {
				q.Add(requestOf(e.ObjectNew))
				return
			}
			q.AddAfter(requestOf(e.ObjectNew), together) // for pods that wait for the release that was written
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watches.Queue) {
			r.index.Delete(client.ObjectKeyFromObject(e.Object))
			r.emitted.Forget(client.ObjectKeyFromObject(e.Object))
			q.Add(requestOf(e.Object)) // a workload may ask for another one
			if state := stored.Whole[podstate.State](e.Object); state != nil {
				q.Add(ctrl.Request{NamespacedName: types.NamespacedName{
					Namespace: state.Namespace, Name: state.Spec.TargetReference.Name,
				}})
			}
		},
	}
}

// podEvents reconciles the PersistentPodStates of the workload of a pod that becomes ready, ends or leaves.
func (r *Reconciler) podEvents() handler.EventHandler {
	return watches.Transitions(func(_ context.Context, q watches.Queue, before, after *corev1.Pod) {
		if after == nil || before != nil && counts(before, after) {
			later(q, r.ofPod(cmp.Or(after, before)))
		}
	})
}

// counts reports whether a change of a pod may change a record. A pod that is no longer ready changes none.
func counts(before, after *corev1.Pod) bool {
	return podstate.Ready(after) && !podstate.Ready(before) ||
		before.DeletionTimestamp == nil && after.DeletionTimestamp != nil || before.Status.Phase != after.Status.Phase &&
		(after.Status.Phase == corev1.PodFailed || after.Status.Phase == corev1.PodSucceeded)
}

func (r *Reconciler) ofPod(pod client.Object) []types.NamespacedName {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil
	}
	target, ok := podstate.Refer(owner.APIVersion, owner.Kind, owner.Name)
	if !ok {
		return nil
	}
	return r.index.Of(pod.GetNamespace(), target)
}

// nodeEvents reconciles the PersistentPodStates with records of a node that leaves or changes its labels, and those
// that miss a node.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q watches.Queue) { later(q, r.index.Missing()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watches.Queue) {
			if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				later(q, slices.Concat(r.index.On(e.ObjectNew.GetName()), r.index.Missing()))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watches.Queue) {
			later(q, r.index.On(e.Object.GetName()))
		},
	}
}

// workloadEvents reconciles the PersistentPodStates of a workload, and the one that it asks for.
func (r *Reconciler) workloadEvents(kind schema.GroupKind) handler.EventHandler {
	add := func(q watches.Queue, o client.Object, asks bool) {
		target := podstate.Target{GroupKind: kind, Name: o.GetName()}
		for _, name := range r.index.Of(o.GetNamespace(), target) {
			q.Add(ctrl.Request{NamespacedName: name})
		}
		if asks || podstate.Asks(o.GetAnnotations()) {
			q.Add(requestOf(o))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watches.Queue) { add(q, e.Object, false) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watches.Queue) {
			if isOther(e.ObjectOld, e.ObjectNew) ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) {
				add(q, e.ObjectNew, podstate.Asks(e.ObjectOld.GetAnnotations()))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watches.Queue) { add(q, e.Object, false) },
	}
}

// kinds are the watched kinds of workloads: StatefulSets, and those of the white list. A watch does not end.
type kinds struct {
	mu      sync.Mutex
	watched map[schema.GroupKind]watchedKind

	cache      cache.Cache
	controller controller.Controller
	events     func(schema.GroupKind) handler.EventHandler
}

type watchedKind struct {
	schema.GroupVersionKind
	// hasSynced reports whether the cache has all objects of the kind.
	hasSynced func() bool
}

// newKinds returns the StatefulSets of a client that reads without watches.
func newKinds() *kinds {
	k := &kinds{watched: map[schema.GroupKind]watchedKind{}}
	for _, gvk := range statefulSets() {
		k.watched[gvk.GroupKind()] = watchedKind{gvk, func() bool { return true }}
	}
	return k
}

func statefulSets() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"), v1beta1.GroupVersion.WithKind("StatefulSet"),
	}
}

// watch starts to watch kinds. It skips those that are not installed.
func (k *kinds) watch(ctx context.Context, all []schema.GroupVersionKind) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var failed []error
	for _, gvk := range all {
		if _, ok := k.watched[gvk.GroupKind()]; ok {
			continue
		}
		object := stored.Untyped(gvk)
		informer, err := k.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err == nil {
			err = k.controller.Watch(source.Kind[client.Object](k.cache, object, k.events(gvk.GroupKind())))
		}
		switch {
		case err == nil:
			k.watched[gvk.GroupKind()] = watchedKind{gvk, informer.HasSynced}
		case !meta.IsNoMatchError(err):
			failed = append(failed, fmt.Errorf("watch %s: %w", gvk, err))
		}
	}
	return errors.Join(failed...)
}

// synced returns the kinds whose objects can be read.
func (k *kinds) synced() map[schema.GroupKind]schema.GroupVersionKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make(map[schema.GroupKind]schema.GroupVersionKind, len(k.watched))
	for kind, w := range k.watched {
		if w.hasSynced() {
			all[kind] = w.GroupVersionKind
		}
	}
	return all
}

// readWhiteList is the time between two reads of the white list.
const readWhiteList = 10 * time.Second

// followWhiteList watches the kinds of the white list, and the StatefulSets that are installed later.
func (r *Reconciler) followWhiteList(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		all, err := podstates.WhiteList(ctx, r.api.Live, r.options.Namespace)
		if err := errors.Join(err, r.kinds.watch(ctx, slices.Concat(statefulSets(), all))); err != nil {
			log.FromContext(ctx).Error(err, "Failed to watch the workloads of PersistentPodStates")
		}
	}, readWhiteList)
	return nil
}

package persistentpodstate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// together is how long events are gathered, so that pods that become ready together cost one write.
const together = time.Second

func later(q queue, all []types.NamespacedName) {
	for _, name := range all {
		q.AddAfter(ctrl.Request{NamespacedName: name}, together)
	}
}

// stateEvents reconciles a PersistentPodState at once where its spec or its annotations have changed.
func (r *Reconciler) stateEvents() handler.EventHandler {
	put := func(o client.Object) {
		if raw, is := o.(*unstructured.Unstructured); is {
			_ = r.index.Put(raw) // the pass reports what cannot be decoded
		}
	}
	request := func(o client.Object) ctrl.Request { return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)} }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { put(e.Object); q.Add(request(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			put(e.ObjectNew)
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) {
				q.Add(request(e.ObjectNew))
				return
			}
			q.AddAfter(request(e.ObjectNew), together) // another writer may have changed the records
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			r.index.Delete(client.ObjectKeyFromObject(e.Object))
			q.Add(request(e.Object)) // a workload may ask for another one
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
	return watches.Direct(handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, is := e.ObjectOld.(*corev1.Pod)
			after, also := e.ObjectNew.(*corev1.Pod)
			if is && also && counts(before, after) {
				later(q, r.ofPod(after))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { later(q, r.ofPod(e.Object)) },
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
	of, is := podstate.Refer(v1beta1.TargetReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name})
	if !is {
		return nil
	}
	return names(r.index, pod.GetNamespace(), of)
}

// nodeEvents reconciles the PersistentPodStates with records of a node that leaves or changes its labels, and those
// that miss a node.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { later(q, r.index.Missing()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				later(q, slices.Concat(r.index.On(e.ObjectNew.GetName()), r.index.Missing()))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { later(q, r.index.On(e.Object.GetName())) },
	}
}

// workloadEvents reconciles the PersistentPodStates of a workload, and the one that it asks for.
func (r *Reconciler) workloadEvents(kind schema.GroupKind) handler.EventHandler {
	add := func(q queue, o client.Object, asked bool) {
		all := names(r.index, o.GetNamespace(), podstate.Target{Group: kind.Group, Kind: kind.Kind, Name: o.GetName()})
		if name := client.ObjectKeyFromObject(o); (asked || podstate.Asks(o.GetAnnotations())) &&
			!slices.Contains(all, name) {
			all = append(all, name)
		}
		for _, name := range all {
			q.Add(ctrl.Request{NamespacedName: name})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, e.Object, false) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld, e.ObjectNew
			if was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID() ||
				(was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil) ||
				!maps.Equal(was.GetAnnotations(), is.GetAnnotations()) {
				add(q, is, podstate.Asks(was.GetAnnotations()))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object, false) },
	}
}

// kinds are the kinds of workloads that PersistentPodStates may refer to.
type kinds struct {
	mu sync.Mutex
	// wanted are both kinds of StatefulSets and those of the white list.
	wanted map[schema.GroupKind]schema.GroupVersionKind
	// watched by kind, also those that are no longer wanted: a watch does not end.
	watched map[schema.GroupKind]*watchedKind

	events     func(schema.GroupKind) handler.EventHandler
	mapper     meta.RESTMapper
	cache      cache.Cache
	controller controller.Controller
}

type watchedKind struct {
	gvk schema.GroupVersionKind
	// synced reports whether the cache has all objects of the kind.
	synced func() bool
}

// newKinds returns the StatefulSets of a client that reads without watches.
func newKinds() *kinds {
	k := &kinds{watched: map[schema.GroupKind]*watchedKind{}}
	k.want(nil)
	for kind, gvk := range k.wanted {
		k.watched[kind] = &watchedKind{gvk: gvk, synced: always}
	}
	return k
}

func always() bool { return true }

func statefulSets() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"), v1beta1.GroupVersion.WithKind("StatefulSet"),
	}
}

func (k *kinds) want(more []schema.GroupVersionKind) {
	k.wanted = map[schema.GroupKind]schema.GroupVersionKind{}
	for _, gvk := range slices.Concat(more, statefulSets()) {
		k.wanted[gvk.GroupKind()] = gvk
	}
}

// start watches the StatefulSets that are installed. The controller starts with them.
func (k *kinds) start(ctx context.Context, mgr ctrl.Manager, c controller.Controller) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mapper, k.cache, k.controller, k.watched = mgr.GetRESTMapper(), mgr.GetCache(), c,
		map[schema.GroupKind]*watchedKind{}
	for _, gvk := range statefulSets() {
		if err := k.watch(ctx, gvk); meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return err
		}
		k.watched[gvk.GroupKind()].synced = always
	}
	return nil
}

// watch starts to watch a kind. It is called with the lock.
func (k *kinds) watch(ctx context.Context, gvk schema.GroupVersionKind) error {
	if k.watched[gvk.GroupKind()] != nil {
		return nil
	}
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	object := stored.Untyped(mapping.GroupVersionKind)
	informer, err := k.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err == nil {
		err = k.controller.Watch(source.Kind[client.Object](k.cache, object, k.events(gvk.GroupKind())))
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk, err)
	}
	k.watched[gvk.GroupKind()] = &watchedKind{gvk: mapping.GroupVersionKind, synced: informer.HasSynced}
	return nil
}

// list takes a new white list.
func (k *kinds) list(ctx context.Context, all []schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.want(all)
	for _, gvk := range all {
		if err := k.watch(ctx, gvk); err != nil {
			log.FromContext(ctx).Error(err, "Failed to watch a kind of the white list", "kind", gvk.String())
		}
	}
}

// of returns the watched version of a kind, or why there is none.
func (k *kinds) of(ctx context.Context, kind schema.GroupKind) (schema.GroupVersionKind, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	gvk, wanted := k.wanted[kind]
	if !wanted {
		return gvk, fmt.Sprintf("kind %s is not in %s of ConfigMap %s",
			kind, kruise.PersistentPodStateWhiteListKey, kruise.ConfigurationName)
	}
	if err := k.watch(ctx, gvk); err != nil { // it may have been installed since
		return gvk, err.Error()
	}
	w := k.watched[kind]
	if !w.synced() {
		return gvk, fmt.Sprintf("objects of kind %s cannot be listed yet; the manager needs the right to list and watch them",
			kind)
	}
	return w.gvk, ""
}

// all returns the kinds whose objects can be read, in a stable order.
func (k *kinds) all() []schema.GroupVersionKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []schema.GroupVersionKind
	for kind, w := range k.watched {
		if _, wanted := k.wanted[kind]; wanted && w.synced() {
			all = append(all, w.gvk)
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// configuration is the source of the ConfigMap with the white list. Its cache has no other ConfigMap.
func (r *Reconciler) configuration(mgr ctrl.Manager) (source.Source, error) {
	only, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:       mgr.GetHTTPClient(),
		Scheme:           mgr.GetScheme(),
		Mapper:           mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
			r.options.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", kruise.ConfigurationName)},
		}}},
	})
	if err == nil {
		err = mgr.Add(only)
	}
	if err != nil {
		return nil, fmt.Errorf("make a cache of ConfigMap %s: %w", kruise.ConfigurationName, err)
	}
	return source.Kind[client.Object](only, &corev1.ConfigMap{},
		handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			config, is := o.(*corev1.ConfigMap)
			if !is || config.Name != kruise.ConfigurationName {
				return nil
			}
			all, err := podstates.WhiteList(config)
			if err != nil { // the kinds that are watched stay
				log.FromContext(ctx).Error(err, "Failed to read the white list of PersistentPodStates")
				return nil
			}
			r.kinds.list(ctx, all)
			return nil // the watches of new kinds enqueue
		})), nil
}

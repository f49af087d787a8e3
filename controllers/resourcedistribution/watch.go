package resourcedistribution

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// When to look at a watch again that has not listed its objects yet, or cannot.
const (
	retryUnsynced   = 100 * time.Millisecond
	retryUnreadable = 5 * time.Second
)

// watched is a kind and a name.
type watched struct {
	kind schema.GroupVersionKind
	name string
}

// watches are one cache of metadata for each kind and name that is distributed.
type watches struct {
	api *binding.Binding
	// mgr runs the caches. It is nil in tests: the client then stands for the caches.
	mgr ctrl.Manager

	mu  sync.Mutex
	all map[watched]*watch
}

// watch is the cache of one kind and name.
type watch struct {
	cache.Cache

	synced func() bool
	// failure is why the cache is not synced.
	failure error
	// users are names of distributions, also of deleted ones.
	users map[string]bool
}

// use returns the cache of a kind and name for a distribution; nil while the cache is not synced. Changes in the cache
// requeue the distribution. An error is why the cache cannot sync.
func (w *watches) use(ctx context.Context, what watched, user string) (client.Reader, error) {
	if w.mgr == nil {
		return w.api.Cached, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.all[what]
	if is == nil {
		is = &watch{users: map[string]bool{}}
		if err := w.start(ctx, what, is); err != nil {
			return nil, fmt.Errorf("watch copies: %w", err)
		}
		w.all[what] = is
	}
	is.users[user] = true
	if is.synced() {
		return is, nil
	}
	return nil, is.failure
}

// start starts a cache, which ends with the manager.
func (w *watches) start(ctx context.Context, what watched, is *watch) (err error) {
	is.Cache, err = cache.New(w.mgr.GetConfig(), cache.Options{
		HTTPClient: w.mgr.GetHTTPClient(), Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper(),
		DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, what.name),
		DefaultTransform:     cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			w.mu.Lock()
			defer w.mu.Unlock()
			is.failure = err
		},
	})
	if err != nil {
		return err
	}
	object := stored.MetadataOf(what.kind, types.NamespacedName{})
	informer, err := is.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	is.synced = informer.HasSynced
	changed := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for user := range is.users {
			w.api.Requeue(ctrl.Request{NamespacedName: types.NamespacedName{Name: user}})
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	}); err != nil {
		return err
	}
	return w.mgr.Add(is.Cache)
}

// all returns a request for each distribution. One that the change of a namespace does not concern sends nothing.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []ctrl.Request {
	distributions, err := stored.List(ctx, r.api.Cached, gvk())
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to requeue distributions")
	}
	requests := make([]ctrl.Request, len(distributions))
	for i, d := range distributions {
		requests[i].Name = d.GetName()
	}
	return requests
}

// namespaceEvents skips updates of a namespace that change no target.
func namespaceEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		terminates := e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
		return terminates || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
	}}
}

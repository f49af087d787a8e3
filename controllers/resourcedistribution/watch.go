package resourcedistribution

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// watches are one cache of metadata for each kind and name that is distributed.
type watches struct {
	api *binding.Binding
	// make returns a cache that is not started. It is nil without a manager: the client then stands for the caches.
	make func(watched, toolscache.WatchErrorHandlerWithContext) (cache.Cache, error)
	// started is closed when the manager runs, whose context is running.
	started chan struct{}
	running context.Context //nolint:containedctx // that of the manager, for what outlasts a request

	mu    sync.Mutex
	all   map[watched]*watch
	group sync.WaitGroup
}

// watch is the cache of one kind and name.
type watch struct {
	cache  cache.Cache
	cancel context.CancelFunc
	synced bool
	// failure is why the cache is not filled.
	failure error
	// users are names of distributions.
	users map[string]bool
}

func newWatches(api *binding.Binding) *watches {
	return &watches{api: api, started: make(chan struct{}), all: map[watched]*watch{}}
}

// setup takes from a manager what caches need, and ends them with it.
func (w *watches) setup(mgr ctrl.Manager) error {
	w.make = func(what watched, failed toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
		return cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient:               mgr.GetHTTPClient(),
			Scheme:                   mgr.GetScheme(),
			Mapper:                   mgr.GetRESTMapper(),
			DefaultWatchErrorHandler: failed,
			DefaultFieldSelector:     fields.OneTermEqualSelector(metav1.ObjectNameField, what.name),
			DefaultTransform:         leanObject,
		})
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		w.running = ctx
		close(w.started)
		<-ctx.Done()
		w.mu.Lock()   // from here on no cache starts
		w.mu.Unlock() //nolint:staticcheck // as above
		w.group.Wait()
		return nil
	}))
}

// leanObject is metadata without what no pass looks at, and which any writer of an object may make large.
func leanObject(object any) (any, error) {
	if is, ok := object.(*metav1.PartialObjectMetadata); ok {
		is.Labels, is.Annotations, is.Finalizers, is.ManagedFields = nil, nil, nil, nil
		return lean(is, is), nil
	}
	return object, nil
}

// use returns the cache of a kind and name, for a distribution; nil while it is not filled. The distribution is
// requeued when it is filled, and when an object in it changes. An error is why it cannot be filled.
func (w *watches) use(ctx context.Context, what watched, user string) (client.Reader, error) {
	if w.make == nil {
		return w.api.Cached, nil
	}
	select {
	case <-w.started:
	case <-ctx.Done():
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running.Err() != nil {
		return nil, nil
	}
	w.releaseBut(user, what)
	is := w.all[what]
	if is == nil {
		is = &watch{users: map[string]bool{}}
		if err := w.start(what, is); err != nil { //nolint:contextcheck // a cache outlasts the request
			return nil, err
		}
		w.all[what] = is
	}
	is.users[user] = true
	switch {
	case is.synced:
		return is.cache, nil
	case is.failure != nil:
		return nil, is.failure
	}
	return nil, nil
}

// start starts a cache.
func (w *watches) start(what watched, is *watch) error {
	made, err := w.make(what, func(ctx context.Context, r *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
		w.failed(is, err)
	})
	if err != nil {
		return fmt.Errorf("make cache of copies: %w", err)
	}
	ctx, cancel := context.WithCancel(w.running)
	object := stored.MetadataOf(what.kind, types.NamespacedName{})
	informer, err := made.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(w.events(is))
	}
	if err != nil {
		cancel()
		return fmt.Errorf("watch copies: %w", err)
	}
	is.cache, is.cancel = made, cancel
	w.group.Add(1)
	go func() {
		defer w.group.Done()

		if err := made.Start(ctx); err != nil && ctx.Err() == nil {
			w.failed(is, err)
		}
	}()
	w.group.Add(1)
	go func() {
		defer w.group.Done()

		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.filled(is)
		}
	}()
	return nil
}

// failed reports why a cache is not filled.
func (w *watches) failed(is *watch, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := is.failure != nil && is.failure.Error() == err.Error()
	is.failure = err
	if !is.synced && !known {
		w.requeue(is)
	}
}

func (w *watches) filled(is *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is.synced, is.failure = true, nil
	w.requeue(is)
}

// events requeues the distributions of a kind and name.
func (w *watches) events(is *watch) toolscache.ResourceEventHandler {
	changed := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requeue(is)
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				changed()
			}
		},
		UpdateFunc: func(before, after any) {
			if matters(before, after) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	}
}

// matters reports whether an update may concern a copy. Updates of objects of other owners do not.
func matters(before, after any) bool {
	old, known := before.(*metav1.PartialObjectMetadata)
	is, ok := after.(*metav1.PartialObjectMetadata)
	if !known || !ok {
		return true
	}
	return old.ResourceVersion != is.ResourceVersion && (distributed(old) || distributed(is))
}

func distributed(o metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(o)
	return ref != nil && ref.Kind == distribution.Kind
}

func (w *watches) requeue(is *watch) {
	for _, user := range slices.Sorted(maps.Keys(is.users)) {
		w.api.Requeue(ctrl.Request{NamespacedName: types.NamespacedName{Name: user}})
	}
}

// release ends what a distribution uses, and returns it.
func (w *watches) release(user string) []watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.releaseBut(user, watched{})
}

// releaseBut ends what a distribution uses besides one. A cache without users ends. The caller holds the lock.
func (w *watches) releaseBut(user string, besides watched) (released []watched) {
	for what, is := range w.all {
		if what == besides || !is.users[user] {
			continue
		}
		released = append(released, what)
		delete(is.users, user)
		if len(is.users) == 0 {
			is.cancel()
			delete(w.all, what)
		}
	}
	return released
}

// selections are the targets of distributions, by name.
type selections struct {
	mu  sync.Mutex
	all map[string]*distribution.Targets
}

// set notes targets; nil for those that cannot be read.
func (s *selections) set(name string, t *distribution.Targets) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*distribution.Targets{}
	}
	s.all[name] = t
}

func (s *selections) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}

// of are the distributions of which a namespace is a target with any of these labels.
func (s *selections) of(namespace string, labels ...map[string]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, targets := range s.all {
		if targets != nil && slices.ContainsFunc(labels, func(l map[string]string) bool {
			return targets.Match(namespace, l)
		}) {
			names = append(names, name)
		}
	}
	return names
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// namespaceEvents requeues the distributions of which a namespace is or was a target.
func (r *Reconciler) namespaceEvents() handler.EventHandler {
	requeue := func(q queue, o client.Object, labels ...map[string]string) {
		for _, name := range r.targets.of(o.GetName(), labels...) {
			q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { requeue(q, e.Object, e.Object.GetLabels()) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { requeue(q, e.Object, e.Object.GetLabels()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld, e.ObjectNew
			terminates := before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil
			if terminates || !maps.Equal(before.GetLabels(), after.GetLabels()) {
				requeue(q, after, before.GetLabels(), after.GetLabels())
			}
		},
	}
}

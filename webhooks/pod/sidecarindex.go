package pod

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// sidecarsFromManager binds the step to the caches of a manager, on all replicas. Of revisions it keeps only those of
// sets, in one namespace, once a set is pinned to one; of namespaces their metadata, once a set selects by their
// labels.
func sidecarsFromManager(mgr ctrl.Manager, o Options) (Step, error) {
	revisions, err := revisionCache(mgr, cmp.Or(o.Sidecars.Namespace, DefaultNamespace))
	if err != nil {
		return Step{}, err
	}
	f := newFiller(mgr.GetCache(), mgr.GetRESTMapper(), revisions)
	if err := mgr.Add(replicated{revisions}); err != nil {
		return Step{}, fmt.Errorf("add the cache of revisions: %w", err)
	}
	if err := mgr.Add(f); err != nil {
		return Step{}, fmt.Errorf("add the index of sets: %w", err)
	}
	return Sidecars(SidecarLookups{
		Sets: f.index, Namespaces: mgr.GetCache(), Revisions: revisions, Live: mgr.GetAPIReader(), Filled: f.wait,
	}, o.Sidecars)
}

func revisionCache(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	ofSets, err := labels.NewRequirement(appsv1beta1.SidecarSetNameLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select revisions of sets: %w", err)
	}
	revisions, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&appsv1.ControllerRevision{}: {
			Namespaces: map[string]cache.Config{namespace: {}}, Label: labels.NewSelector().Add(*ofSets),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of revisions: %w", err)
	}
	return revisions, nil
}

// replicated is a cache that runs on every replica. A manager runs a cache that is restricted by kind or by namespace
// only on the leader, because such a cache does not declare that it needs no election.
type replicated struct{ cache.Cache }

// NeedLeaderElection returns false: all replicas answer.
func (replicated) NeedLeaderElection() bool { return false }

// filler keeps an index in line with the cache. It is started once.
type filler struct {
	index     *Index
	cache     cache.Cache
	mapper    meta.RESTMapper
	revisions cache.Cache
	// look waits until the next look for a kind that is not installed; false if the context ends before.
	look func(ctx context.Context) bool

	filled chan struct{}
	fill   func()
}

// lookFor is the time between two looks for a kind that is not installed. The leader waits for longer before it has
// pods sent for its objects: see Options.LookFor of controllers/podscope.
const lookFor = 5 * time.Second

func newFiller(c cache.Cache, mapper meta.RESTMapper, revisions cache.Cache) *filler {
	f := &filler{index: NewIndex(), cache: c, mapper: mapper, revisions: revisions, filled: make(chan struct{})}
	f.fill = sync.OnceFunc(func() { close(f.filled) })
	f.look = func(ctx context.Context) bool {
		return wait.PollUntilContextCancel(ctx, lookFor, false, func(context.Context) (bool, error) {
			return true, nil
		}) == nil
	}
	return f
}

// NeedLeaderElection returns false: all replicas answer.
func (*filler) NeedLeaderElection() bool { return false }

// Start follows the SidecarSets until the context ends.
func (f *filler) Start(ctx context.Context) error {
	// No informer of the cache runs before a set is pinned, so this waits for its start alone.
	if !f.revisions.WaitForCacheSync(ctx) {
		return nil
	}
	if !f.installed(ctx) {
		return nil
	}
	// Untyped, so that a set that cannot be decoded does not hide the others.
	informer, err := f.cache.GetInformer(ctx, stored.Untyped(scope.Kind()))
	if err != nil {
		return fmt.Errorf("follow sidecarsets: %w", err)
	}
	put := func(object any) {
		if raw, is := object.(*unstructured.Unstructured); is {
			f.put(log.FromContext(ctx), raw)
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, now any) { put(now) },
		DeleteFunc: func(object any) {
			if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
				object = last.Obj
			}
			if set, is := object.(*unstructured.Unstructured); is {
				f.index.Delete(set.GetName())
			}
		},
	})
	if err != nil {
		return fmt.Errorf("follow sidecarsets: %w", err)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		f.fill()
	}
	<-ctx.Done()
	return nil
}

// installed waits until SidecarSets are installed; false if the context ends before. Without them the index is complete
// as it is.
func (f *filler) installed(ctx context.Context) bool {
	logger := log.FromContext(ctx)
	for waiting := false; ; waiting = true {
		is, err := binding.Installed(f.mapper, scope.Kind())
		switch {
		case is:
			return true
		case err != nil:
			logger.Error(err, "Failed to look up SidecarSets")
		case !waiting:
			logger.Info("Waiting for SidecarSets, which are not installed")
			f.fill()
		}
		if !f.look(ctx) {
			return false
		}
	}
}

func (f *filler) put(logger logr.Logger, raw *unstructured.Unstructured) {
	set, invalid, err := scope.Decode(raw)
	if err == nil && invalid != nil {
		f.index.PutInvalid(set, invalid)
		err = invalid
	} else if err == nil {
		err = f.index.Put(set)
	}
	if err != nil {
		logger.Error(err, "Failed to read a sidecarset in full, pods that it may select are rejected",
			"sidecarset", raw.GetName())
	}
}

// wait until the index has all sets of the cache.
func (f *filler) wait(ctx context.Context) error {
	select {
	case <-f.filled:
		return nil
	default:
	}
	select {
	case <-f.filled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

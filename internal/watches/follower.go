package watches

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// lookFor is the time between two looks for the kind where it is not installed.
const lookFor = 5 * time.Second

// Follower follows the objects of a kind. It is started once.
//
// A kind that is not installed is looked for, and its index is complete as it is until then. The index of a kind that
// is found later is not complete before it has the objects: another version of the kind may have stored some. Objects
// are untyped, so that one that cannot be decoded does not hide the others.
type Follower struct {
	Kind schema.GroupVersionKind
	// Put is called for each state of an object, and Delete for one that is gone.
	Put    func(ctx context.Context, object *unstructured.Unstructured)
	Delete func(object *unstructured.Unstructured)

	// Before waits for what Put needs; false if the context ends before. It is nil where Put needs nothing.
	Before func(ctx context.Context) bool

	cache  cache.Cache
	mapper meta.RESTMapper
	mu     sync.Mutex
	// filled is closed while the index is complete.
	filled chan struct{}
	// look waits until the next look for a kind that is not installed; false if the context ends before.
	look func(ctx context.Context) bool
}

// Follow returns a follower that keeps an index of the objects of a kind. An object that cannot be decoded is logged,
// and left out.
func Follow[T any](x *stored.Index[T], kind schema.GroupVersionKind) *Follower {
	return &Follower{
		Kind: kind,
		Put: func(ctx context.Context, raw *unstructured.Unstructured) {
			if err := x.Put(raw); err != nil {
				log.FromContext(ctx).Error(err, "Failed to decode an object, which is left out",
					"kind", kind.Kind, "name", client.ObjectKeyFromObject(raw))
			}
		},
		Delete: func(raw *unstructured.Unstructured) { x.Delete(client.ObjectKeyFromObject(raw)) },
	}
}

// AddTo has a manager run the follower. It must be called before the manager starts.
func (f *Follower) AddTo(mgr ctrl.Manager) error {
	f.bind(mgr.GetCache(), mgr.GetRESTMapper())
	if err := mgr.Add(f); err != nil {
		return fmt.Errorf("add the index of %s: %w", f.Kind.Kind, err)
	}
	return nil
}

func (f *Follower) bind(c cache.Cache, mapper meta.RESTMapper) {
	f.cache, f.mapper, f.filled = c, mapper, make(chan struct{})
	f.look = func(ctx context.Context) bool {
		at := func(context.Context) (bool, error) { return true, nil }
		return wait.PollUntilContextCancel(ctx, lookFor, false, at) == nil
	}
}

// NeedLeaderElection returns false: all replicas answer.
func (*Follower) NeedLeaderElection() bool { return false }

// Start follows the objects until the context ends.
func (f *Follower) Start(ctx context.Context) error {
	if f.Before != nil && !f.Before(ctx) || !f.installed(ctx) {
		return nil
	}
	informer, err := f.cache.GetInformer(ctx, stored.Untyped(f.Kind))
	if err != nil {
		return fmt.Errorf("follow %s: %w", f.Kind.Kind, err)
	}
	put := func(raw *unstructured.Unstructured) { f.Put(ctx, raw) }
	registration, err := informer.AddEventHandler(UntypedHandler(put, f.Delete))
	if err != nil {
		return fmt.Errorf("follow %s: %w", f.Kind.Kind, err)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		f.fill()
	}
	<-ctx.Done()
	return nil
}

// UntypedHandler returns the handler of an informer of untyped objects.
func UntypedHandler(put, remove func(*unstructured.Unstructured)) toolscache.ResourceEventHandler {
	call := func(f func(*unstructured.Unstructured), object any) {
		if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if raw, ok := object.(*unstructured.Unstructured); ok {
			f(raw)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(now any) { call(put, now) }, UpdateFunc: func(_, now any) { call(put, now) },
		DeleteFunc: func(last any) { call(remove, last) },
	}
}

// installed waits until the kind is installed; false if the context ends before.
func (f *Follower) installed(ctx context.Context) bool {
	logger := log.FromContext(ctx)
	for complete := false; ; {
		is, err := binding.Installed(f.mapper, f.Kind)
		switch {
		case is:
			if complete {
				f.empty() // the kind may have objects of an older version
			}
			return true
		case err != nil:
			logger.Error(err, "Failed to look up a kind", "kind", f.Kind.Kind)
		case !complete:
			complete = true
			logger.Info("Waiting for a kind that is not installed", "kind", f.Kind.Kind)
			f.fill()
		}
		if !f.look(ctx) {
			return false
		}
	}
}

// fill makes Wait return, and empty makes it wait.
func (f *Follower) fill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.filled)
}

func (f *Follower) empty() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filled = make(chan struct{})
}

// Wait until Put was called for all objects of the cache. It returns at once if so, also with a context that has ended.
func (f *Follower) Wait(ctx context.Context) error {
	f.mu.Lock()
	filled := f.filled
	f.mu.Unlock()
	select {
	case <-filled:
		return nil
	default:
	}
	select {
	case <-filled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

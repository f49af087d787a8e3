package budgets

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// FromManager returns a Guard that follows the budgets in the cache of a manager, on all replicas. It must be called
// before the manager starts. Webhooks and reconcilers of one manager share one Guard, so that their spending meets in
// one line.
func FromManager(mgr ctrl.Manager, o Options) (*Guard, error) {
	f := &follower{
		index: NewIndex(), cache: mgr.GetCache(), mapper: mgr.GetRESTMapper(), filled: make(chan struct{}), lookFor: lookFor,
	}
	f.fill = sync.OnceFunc(func() { close(f.filled) })
	if o.Recorder == nil {
		//nolint:staticcheck // the newer API does not set the source
		o.Recorder = mgr.GetEventRecorderFor("podunavailablebudget-webhook")
	}
	g, err := New(Lookups{
		Budgets: f.index, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), ReplicaSets: mgr.GetCache(), Filled: f.wait,
	}, o)
	if err != nil {
		return nil, err
	}
	f.guard = g
	if err := mgr.Add(f); err != nil {
		return nil, fmt.Errorf("add the index of budgets: %w", err)
	}
	return g, nil
}

// lookFor is the time between two looks for the kind where it is not installed. controllers/podscope looks less often.
const lookFor = 5 * time.Second

// follower keeps an index in line with a cache. It is started once.
type follower struct {
	index   *Index
	guard   *Guard
	cache   cache.Cache
	mapper  meta.RESTMapper
	lookFor time.Duration

	filled chan struct{}
	fill   func()
}

// NeedLeaderElection returns false: all replicas answer.
func (*follower) NeedLeaderElection() bool { return false }

// Start follows the budgets until the context ends.
func (f *follower) Start(ctx context.Context) error {
	if !f.installed(ctx) {
		return nil
	}
	// Untyped, so that a budget that cannot be decoded does not hide the others.
	informer, err := f.cache.GetInformer(ctx, stored.Untyped(Kind()))
	if err != nil {
		return fmt.Errorf("follow budgets: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { f.put(ctx, now) },
		UpdateFunc: func(_, now any) { f.put(ctx, now) },
		DeleteFunc: f.remove,
	})
	if err != nil {
		return fmt.Errorf("follow budgets: %w", err)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		f.fill()
	}
	<-ctx.Done()
	return nil
}

func (f *follower) put(ctx context.Context, now any) {
	raw, is := now.(*unstructured.Unstructured)
	if !is {
		return
	}
	if err := f.index.Put(raw); err != nil {
		log.FromContext(ctx).Error(err, "Failed to read a budget, which guards no pod",
			"budget", client.ObjectKeyFromObject(raw))
		f.index.Delete(client.ObjectKeyFromObject(raw))
	}
	f.guard.Seen(raw.GetUID(), client.ObjectKeyFromObject(raw))
}

func (f *follower) remove(object any) {
	if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = last.Obj
	}
	if raw, is := object.(*unstructured.Unstructured); is {
		f.index.Delete(client.ObjectKeyFromObject(raw))
		f.guard.Seen(raw.GetUID(), client.ObjectKeyFromObject(raw))
	}
}

// installed waits until budgets are installed; false if the context ends before. Without them the index is complete as
// it is.
func (f *follower) installed(ctx context.Context) bool {
	logger := log.FromContext(ctx)
	for waiting := false; ; waiting = true {
		is, err := binding.Installed(f.mapper, Kind())
		switch {
		case is:
			return true
		case err != nil:
			logger.Error(err, "Failed to look up PodUnavailableBudgets")
		case !waiting:
			logger.Info("Waiting for PodUnavailableBudgets, which are not installed")
			f.fill()
		}
		if wait.PollUntilContextCancel(ctx, f.lookFor, false, func(context.Context) (bool, error) {
			return true, nil
		}) != nil {
			return false
		}
	}
}

// wait until the index has all budgets of the cache.
func (f *follower) wait(ctx context.Context) error {
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

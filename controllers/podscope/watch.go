package podscope

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// lookFor is the default of Options.LookFor. Every replica of the webhook looks more often.
const lookFor = 10 * time.Second

// kinds returns the kinds of the sources.
func (r *Reconciler) kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for i := range r.sources {
		if kind := r.sources[i].Kind; !kind.Empty() && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// follower watches the objects of the kinds that were not installed when the manager started. It runs on the leader.
type follower struct {
	*Reconciler

	manager    ctrl.Manager
	controller controller.Controller
	missing    []schema.GroupVersionKind
	// found are the kinds that were installed at the last look.
	found map[schema.GroupVersionKind]bool
}

// Start looks for the kinds until all of them are installed. A kind is followed at the second look that finds it,
// because a replica of the webhook must not receive pods for objects of which it does not know the kind yet.
func (f *follower) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithValues("controller", f.form.controller)
	for len(f.missing) > 0 {
		f.missing = slices.DeleteFunc(f.missing, func(kind schema.GroupVersionKind) bool {
			is, err := binding.Installed(f.manager.GetRESTMapper(), kind)
			again := is && f.found[kind]
			f.found[kind] = is
			if again {
				err = f.watch(kind)
			}
			if err != nil {
				logger.Error(err, "Failed to follow a kind", "kind", kind.Kind)
			}
			return again && err == nil
		})
		if !pause(ctx, f.options.LookFor) {
			return nil
		}
	}
	return nil
}

func (f *follower) watch(kind schema.GroupVersionKind) error {
	err := f.controller.Watch(source.Kind[client.Object](f.manager.GetCache(), stored.Untyped(kind), f.wake(),
		specEvents()))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed[kind] = true
	return nil
}

// pause reports whether the context goes on.
func pause(ctx context.Context, d time.Duration) bool {
	return wait.PollUntilContextCancel(ctx, d, false, func(context.Context) (bool, error) { return true, nil }) == nil
}

// wake enqueues the configuration.
func (r *Reconciler) wake() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{r.request()}
	})
}

func (r *Reconciler) request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: r.options.Configuration}}
}

// specEvents are all events but those of a status, which changes with every pod.
func specEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	}}
}

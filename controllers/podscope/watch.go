package podscope

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// follow watches the kinds of the sources that are installed, and returns when to look for others; zero for never. A
// kind that was missing is followed once it is installed for Options.LookFor, because a replica of the webhook must not
// receive pods for objects of which it does not know the kind yet.
func (r *Reconciler) follow() (again time.Duration, err error) {
	for i := range r.sources {
		kind := r.sources[i].Kind
		if kind.Empty() || r.followed[kind] {
			continue
		}
		installed, err := binding.Installed(r.manager.GetRESTMapper(), kind)
		if err != nil {
			return 0, err
		}
		since, late := r.late[kind]
		now := r.options.Now()
		switch {
		case !installed:
			r.late[kind] = time.Time{}
		case late && since.IsZero():
			r.late[kind] = now
		case !late || now.Sub(since) >= r.options.LookFor:
			objects := source.Kind[client.Object](r.manager.GetCache(), stored.Untyped(kind), r.wake(), specEvents())
			if err := r.controller.Watch(objects); err != nil {
				return 0, fmt.Errorf("follow kind %s: %w", kind.Kind, err)
			}
			r.followed[kind] = true
			continue
		}
		again = r.options.LookFor
	}
	return again, nil
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

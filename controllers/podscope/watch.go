package podscope

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// follow watches the kinds of the sources that are installed, and returns when to look for others; zero for never.
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
		if !installed {
			again = r.options.LookFor
			continue
		}
		objects := source.Kind[client.Object](r.manager.GetCache(), stored.Untyped(kind), r.wake(), specEvents())
		if err := r.controller.Watch(objects); err != nil {
			return 0, fmt.Errorf("follow kind %s: %w", kind.Kind, err)
		}
		r.followed[kind] = true
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
	return watches.Decisive(func(before, after *unstructured.Unstructured) bool {
		return !maps.Equal(before.GetAnnotations(), after.GetAnnotations())
	})
}

package watches

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/binding"
)

// Queue is the queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Transitions returns a handler that calls change with an object before and after an event. One of both is nil where
// the object was created or deleted. Objects that exist when the process starts cause no call: the process reconciles
// all objects then. An update may replace an object by another one of its name, with another UID.
func Transitions[T any, P interface {
	*T
	client.Object
}](change func(ctx context.Context, q Queue, before, after P)) handler.EventHandler {
	return binding.Direct(handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) {
			if object, is := e.Object.(P); is && !e.IsInInitialList {
				change(ctx, q, nil, object)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q Queue) {
			if object, is := e.Object.(P); is {
				change(ctx, q, object, nil)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) {
			before, was := e.ObjectOld.(P)
			after, is := e.ObjectNew.(P)
			if was && is {
				change(ctx, q, before, after)
			}
		},
	})
}

// Log logs an error of a handler of events, which no pass can return. A handler that ends with the process has none.
func Log(ctx context.Context, err error, message string) {
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, message)
	}
}

// Package watchestest records what handlers of events requeue.
package watchestest

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/watches"
)

// Queue keeps the requests that are added. Its other methods must not be called.
type Queue struct {
	watches.Queue

	names []string
}

// Add implements the queue.
func (q *Queue) Add(r reconcile.Request) { q.names = append(q.names, r.Name) }

// Taken returns the names that were added since the last call, sorted and without repeats.
func (q *Queue) Taken() string {
	slices.Sort(q.names)
	names := strings.Join(slices.Compact(q.names), " ")
	q.names = nil
	return names
}

// Happen hands a handler the event of an object that was created (before is nil), deleted (after is nil) or updated,
// and returns the names that the handler requeues, as Taken does.
func Happen[T any, P interface {
	*T
	client.Object
}](ctx context.Context, h handler.EventHandler, before, after P) string {
	q := &Queue{}
	switch {
	case before == nil:
		h.Create(ctx, event.CreateEvent{Object: after}, q)
	case after == nil:
		h.Delete(ctx, event.DeleteEvent{Object: before}, q)
	default:
		h.Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
	}
	return q.Taken()
}

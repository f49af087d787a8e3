package watches

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Direct returns a handler that does what handler.Funcs does, but asks reflection nothing at an event of an object that
// has changed: with a dozen handlers of pods, those questions are a twentieth of the CPU time of a rollout. What a
// start lists and a resync repeats gets a lower priority, as with handler.Funcs.
func Direct(f handler.Funcs) handler.EventHandler { return direct{f} }

type direct struct{ handler.Funcs }

// Create calls the function of an object that is new.
func (d direct) Create(ctx context.Context, e event.CreateEvent, q Queue) {
	if e.IsInInitialList || d.CreateFunc == nil {
		d.Funcs.Create(ctx, e, q)
		return
	}
	d.CreateFunc(ctx, e, q)
}

// Update calls the function of an object that has changed.
func (d direct) Update(ctx context.Context, e event.UpdateEvent, q Queue) {
	if d.UpdateFunc == nil || !changed(e.ObjectOld, e.ObjectNew) {
		d.Funcs.Update(ctx, e, q)
		return
	}
	d.UpdateFunc(ctx, e, q)
}

func changed(before, after client.Object) bool {
	return before != nil && after != nil && before.GetResourceVersion() != after.GetResourceVersion()
}

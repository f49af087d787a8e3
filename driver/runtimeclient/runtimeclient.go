// Package runtimeclient runs passes with the client of controller-runtime.
//
//	type reconciler struct{ *runtimeclient.Workloads }
//	...
//	r := &reconciler{runtimeclient.NewWorkloads(mgr.GetClient(), mgr.GetAPIReader(), runtimeclient.WorkloadsOptions{})}
//	err := ctrl.NewControllerManagedBy(mgr).For(&Site{}).Owns(&corev1.Pod{}).WatchesRawSource(&r.Queue).Complete(r)
//
// Workloads makes the passes of package workload: operator_test.go is a whole operator. Other passes run with
// driver.Run:
//
//	err := driver.Run(ctx, pass, driver.Options[*write.Write]{
//		Send:    runtimeclient.Sender(r.Client, r.live),
//		Owner:   request.NamespacedName,
//		Ledgers: []driver.Recorder{r.pods},
//	})
//	return r.Result(request, after, err)
//
// A reconciler that reads from a cache records the answers in a ledger, or the next pass repeats the writes: see
// package ledger. A Recording records what a reconciler writes outside of passes.
package runtimeclient

import (
	"context"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/write"
)

// Sender returns what sends the writes of a pass with a client. live answers the questions of the pass: it reads past
// the cache.
func Sender(c client.Client, live client.Reader) driver.Send {
	return func(ctx context.Context, w *write.Write) (write.Object, error) {
		if w.Verb != write.Get {
			return Send(ctx, c, w)
		}
		object := answer(w.Object)
		if err := live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return nil, err
		}
		return object, nil
	}
}

// Send sends a write, and returns the object as the API server answered; nil for a deletion. The object of the write
// stays as it is. Errors are those of the client: see write.IsOutdated.
func Send( //nolint:ireturn // whichever type the write is of
	ctx context.Context, c client.Client, w *write.Write,
) (write.Object, error) {
	switch w.Verb {
	case write.Create:
		object := copyOf(w.Object)
		if err := c.Create(ctx, object, &client.CreateOptions{FieldManager: w.FieldOwner}); err != nil {
			return nil, err
		}
		return object, nil
	case write.Delete:
		o := w.DeleteOptions()
		return nil, c.Delete(ctx, w.Object, &client.DeleteOptions{
			Preconditions: o.Preconditions, PropagationPolicy: o.PropagationPolicy,
		})
	case write.Evict:
		return nil, c.SubResource("eviction").Create(ctx, w.Object, driver.Eviction(w))
	case write.Patch:
		return patch(ctx, c, w)
	}
	return nil, fmt.Errorf("send write: unknown verb %q", w.Verb)
}

func patch(ctx context.Context, c client.Client, w *write.Write) (write.Object, error) { //nolint:ireturn // as Send
	data, err := w.Data()
	if err != nil {
		return nil, err
	}
	object := answer(w.Object)
	options := client.PatchOptions{FieldManager: w.FieldOwner}
	if w.Force {
		options.Force = &w.Force
	}
	switch raw := client.RawPatch(w.Type, data); w.Subresource {
	case write.Main:
		err = c.Patch(ctx, object, raw, &options)
	case write.Status: // which clients that wrap another one know
		err = c.Status().Patch(ctx, object, raw, &client.SubResourcePatchOptions{PatchOptions: options})
	default:
		err = c.SubResource(w.Subresource).Patch(ctx, object, raw, &client.SubResourcePatchOptions{PatchOptions: options})
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// answer returns an object that the answer is decoded into. It is cheaper than a copy, and nothing of the old object is
// left in it.
func answer(of write.Object) client.Object {
	made, _ := reflect.New(reflect.TypeOf(of).Elem()).Interface().(client.Object)
	made.GetObjectKind().SetGroupVersionKind(of.GetObjectKind().GroupVersionKind())
	made.SetNamespace(of.GetNamespace())
	made.SetName(of.GetName())
	return made
}

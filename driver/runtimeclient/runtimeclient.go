// Package runtimeclient sends the writes of plans with the client of controller-runtime.
//
//	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
//		for len(writes) > 0 {
//			w := writes[0]
//			object, err := runtimeclient.Send(ctx, c, &w.Write)
//			writes = append(writes[1:], pass.Answer(time.Now(), w, object, err)...)
//		}
//	}
//
// A reconciler that reads from a cache must record what Send returns, or the next pass repeats the writes: see package
// ledger.
package runtimeclient

import (
	"context"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/write"
)

// Send sends a write, and returns the object as the API server answered; nil for a deletion. The object of the write stays as
// it is. Errors are those of the client: see write.IsOutdated.
func Send(ctx context.Context, c client.Client, w *write.Write) (write.Object, error) { //nolint:ireturn // whichever type the write is of
	switch w.Verb {
	case write.Create:
		object, is := w.Object.DeepCopyObject().(client.Object)
		if !is {
			return nil, fmt.Errorf("create %T: its copy is no object", w.Object)
		}
		if err := c.Create(ctx, object); err != nil {
			return nil, err
		}
		return object, nil
	case write.Delete:
		uid := w.Object.GetUID()
		return nil, c.Delete(ctx, w.Object, client.Preconditions{UID: &uid})
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
	object, err := answer(w.Object)
	if err != nil {
		return nil, err
	}
	if w.Subresource == write.Main {
		err = c.Patch(ctx, object, client.RawPatch(w.Type, data))
	} else {
		err = c.SubResource(w.Subresource).Patch(ctx, object, client.RawPatch(w.Type, data))
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// answer returns an object that the answer is decoded into. It is cheaper than a copy, and nothing of the old object is
// left in it.
func answer(of write.Object) (client.Object, error) {
	made, is := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(of).Elem()))
	if !is {
		return nil, fmt.Errorf("patch %T: not an object", of)
	}
	made.GetObjectKind().SetGroupVersionKind(of.GetObjectKind().GroupVersionKind())
	made.SetNamespace(of.GetNamespace())
	made.SetName(of.GetName())
	return made, nil
}

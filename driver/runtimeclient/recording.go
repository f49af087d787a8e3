package runtimeclient

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/write"
)

// Recording is a client that records the answers to its writes in ledgers, as driver.Run does for the writes of a pass.
// Make one in each Reconcile, and write with nothing else:
//
//	c := &runtimeclient.Recording{
//		Client: r.Client, Owner: request.NamespacedName, Ledgers: []driver.Recorder{r.pods},
//	}
//
// It records creations, updates, patches, server-side applies, deletions and evictions, of objects and of subresources,
// under the Go type of the written object. A creation of unknown outcome, as after a timeout, is in doubt: the next
// Overlay reads the object live. Any other write of unknown outcome is not recorded: the cache shows the state before
// or after, and both are true of some time. Dry runs change nothing and are not recorded.
//
// Reads are those of the Client, without the ledgers. Lay the ledger over all that an owner has with Ledger.Overlay. A
// single read cannot do that. An object that a List lacks may be gone, or not be selected: a patch may have changed its
// labels, and an index of the cache is not known here. Nor has the answer to a read a place for when to look again.
//
// What a Recording cannot record:
//   - DeleteAllOf of a recorded type: its answer does not name the objects. It fails. List the objects and delete each.
//   - Writes whose answer is another object, as a binding or a scale, and applies of subresources, which are no part of
//     the Client before controller-runtime v0.23.
//   - Metadata alone, or an untyped object, in the ledger of the Go type.
type Recording struct {
	// Client reads and writes.
	client.Client

	// Owner is the object that is reconciled. The answers are recorded under its name.
	Owner types.NamespacedName
	// Ledgers record the answers, one ledger for each kind of object that is read from a cache.
	Ledgers []driver.Recorder
}

// record does a write. The object is what is written, as it is before. do returns what the API server answered.
func (r *Recording) record(
	ctx context.Context, w write.Write, dryRun []string, do func() (client.Object, error),
) error {
	if len(dryRun) > 0 {
		_, err := do()
		return err
	}
	w.Object = copyOf(w.Object)
	send := func(context.Context, *write.Write) (write.Object, error) {
		answer, err := do()
		if err != nil || answer == nil {
			return nil, err
		}
		return copyOf(answer), nil // the caller may change its object
	}
	_, err := driver.Recording(send, r.Owner, r.Ledgers...)(ctx, &w)
	return err
}

func copyOf(object write.Object) write.Object { //nolint:ireturn // whichever type the object is of
	if made, is := object.DeepCopyObject().(write.Object); is {
		return made
	}
	return object
}

// Create implements client.Client.
func (r *Recording) Create(ctx context.Context, object client.Object, o ...client.CreateOption) error {
	dryRun := (&client.CreateOptions{}).ApplyOptions(o).DryRun
	return r.record(ctx, write.Write{Verb: write.Create, Object: object}, dryRun, func() (client.Object, error) {
		return object, r.Client.Create(ctx, object, o...)
	})
}

// Update implements client.Client.
func (r *Recording) Update(ctx context.Context, object client.Object, o ...client.UpdateOption) error {
	dryRun := (&client.UpdateOptions{}).ApplyOptions(o).DryRun
	return r.record(ctx, write.Write{Verb: write.Patch, Object: object}, dryRun, func() (client.Object, error) {
		return object, r.Client.Update(ctx, object, o...)
	})
}

// Patch implements client.Client.
func (r *Recording) Patch(ctx context.Context, object client.Object, p client.Patch, o ...client.PatchOption) error {
	dryRun := (&client.PatchOptions{}).ApplyOptions(o).DryRun
	w := write.Write{Verb: write.Patch, Object: object, Type: p.Type()}
	return r.record(ctx, w, dryRun, func() (client.Object, error) {
		return object, r.Client.Patch(ctx, object, p, o...)
	})
}

// Apply implements client.Client.
func (r *Recording) Apply(ctx context.Context, c runtime.ApplyConfiguration, o ...client.ApplyOption) error {
	applied, err := r.objectOf(c)
	if err != nil {
		return err
	}
	dryRun := (&client.ApplyOptions{}).ApplyOptions(o).DryRun
	w := write.Write{Verb: write.Patch, Object: applied, Type: types.ApplyPatchType}
	return r.record(ctx, w, dryRun, func() (client.Object, error) {
		if err := r.Client.Apply(ctx, c, o...); err != nil {
			return nil, err
		}
		return r.objectOf(c)
	})
}

// objectOf returns an apply configuration as an object, of the Go type that the scheme has for its kind.
func (r *Recording) objectOf(c runtime.ApplyConfiguration) (client.Object, error) {
	if untyped, is := c.(client.Object); is {
		return untyped, nil
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", c, err)
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("read kind of %T: %w", c, err)
	}
	made, err := r.Scheme().New(kind.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("record %T: %w", c, err)
	}
	object, is := made.(client.Object)
	if !is {
		return nil, fmt.Errorf("record %T: %T is no object", c, made)
	}
	if err := json.Unmarshal(data, object); err != nil {
		return nil, fmt.Errorf("decode %T: %w", c, err)
	}
	return object, nil
}

// Delete implements client.Client. An object without a UID is read first: the ledger records the deletion of one
// object, and not of a name.
func (r *Recording) Delete(ctx context.Context, object client.Object, o ...client.DeleteOption) error {
	dryRun := (&client.DeleteOptions{}).ApplyOptions(o).DryRun
	w := write.Write{Verb: write.Delete, Object: r.observed(ctx, object)}
	return r.record(ctx, w, dryRun, func() (client.Object, error) { return nil, r.Client.Delete(ctx, object, o...) })
}

// observed returns an object that is to be deleted with its UID, as far as the client knows it.
func (r *Recording) observed(ctx context.Context, object client.Object) client.Object {
	if object.GetUID() != "" || !r.holds(object) {
		return object
	}
	read, err := answer(object)
	if err != nil || r.Get(ctx, client.ObjectKeyFromObject(object), read) != nil {
		return object
	}
	return read
}

// DeleteAllOf implements client.Client for objects that no ledger records.
func (r *Recording) DeleteAllOf(ctx context.Context, object client.Object, o ...client.DeleteAllOfOption) error {
	if r.holds(object) {
		return fmt.Errorf("delete all of %T: the answer does not name the objects to record: delete each", object)
	}
	return r.Client.DeleteAllOf(ctx, object, o...)
}

// holds reports whether a ledger may record writes of an object.
func (r *Recording) holds(object client.Object) bool {
	for _, l := range r.Ledgers {
		if some, is := l.(interface{ Holds(write.Object) bool }); !is || some.Holds(object) {
			return true
		}
	}
	return false
}

// Status implements client.Client.
func (r *Recording) Status() client.SubResourceWriter { return r.SubResource(write.Status) }

// SubResource implements client.Client.
func (r *Recording) SubResource(name string) client.SubResourceClient {
	return &recordingSubresource{SubResourceClient: r.Client.SubResource(name), of: r, name: name}
}

type recordingSubresource struct {
	client.SubResourceClient

	of   *Recording
	name string
}

// Create implements client.SubResourceWriter.
func (s *recordingSubresource) Create(
	ctx context.Context, object, body client.Object, o ...client.SubResourceCreateOption,
) error {
	if s.name != "eviction" {
		return s.SubResourceClient.Create(ctx, object, body, o...)
	}
	all := (&client.SubResourceCreateOptions{}).ApplyOptions(o)
	w := write.Write{Verb: write.Evict, Object: s.of.observed(ctx, object)}
	return s.of.record(ctx, w, all.DryRun, func() (client.Object, error) {
		return nil, s.SubResourceClient.Create(ctx, object, body, o...)
	})
}

// Update implements client.SubResourceWriter.
func (s *recordingSubresource) Update(
	ctx context.Context, object client.Object, o ...client.SubResourceUpdateOption,
) error {
	all := (&client.SubResourceUpdateOptions{}).ApplyOptions(o)
	w := write.Write{Verb: write.Patch, Object: object, Subresource: s.name}
	return s.of.record(ctx, w, all.DryRun, func() (client.Object, error) {
		return answered(object, all.SubResourceBody), s.SubResourceClient.Update(ctx, object, o...)
	})
}

// Patch implements client.SubResourceWriter.
func (s *recordingSubresource) Patch(
	ctx context.Context, object client.Object, p client.Patch, o ...client.SubResourcePatchOption,
) error {
	all := (&client.SubResourcePatchOptions{}).ApplyOptions(o)
	w := write.Write{Verb: write.Patch, Object: object, Subresource: s.name, Type: p.Type()}
	return s.of.record(ctx, w, all.DryRun, func() (client.Object, error) {
		return answered(object, all.SubResourceBody), s.SubResourceClient.Patch(ctx, object, p, o...)
	})
}

// answered returns the object that the answer is decoded into.
func answered(object, body client.Object) client.Object {
	if body != nil {
		return body
	}
	return object
}

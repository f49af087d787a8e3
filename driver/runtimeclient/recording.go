package runtimeclient

import (
	"cmp"
	"context"
	"errors"

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
// It records creations, updates, patches, deletions and evictions, of objects and of subresources, under the Go type of
// the written object. A creation of unknown outcome, as after a timeout, is in doubt: the next Overlay reads the object
// live. Any other write of unknown outcome is not recorded: the cache shows the state before or after, and both are
// true of some time. Dry runs change nothing and are not recorded.
//
// Reads are those of the Client, without the ledgers. Lay the ledger over all that an owner has with Ledger.Overlay. A
// single read cannot do that. An object that a List lacks may be gone, or not be selected: a patch may have changed its
// labels, and an index of the cache is not known here. Nor has the answer to a read a place for when to look again.
//
// What a Recording cannot record:
//   - Apply and DeleteAllOf, whose answers name no object. They fail. Call Patch with client.Apply, and Delete for each
//     object. For objects that no ledger records, call the Client itself.
//   - Writes whose answer is another object, as a binding or a scale, and applies of subresources.
//   - The deletion of an object without a UID: delete what was observed. The cache shows the other deletion later.
//   - Metadata alone, or an untyped object, in the ledger of the Go type.
type Recording struct {
	// Client reads and writes.
	client.Client

	// Owner is the object that is reconciled. The answers are recorded under its name.
	Owner types.NamespacedName
	// Ledgers record the answers, one ledger for each kind of object that is read from a cache.
	Ledgers []driver.Recorder
}

// record does a write. do decodes the answer of the API server into the object of the write, but for deletions.
func (r *Recording) record(ctx context.Context, w write.Write, dryRun []string, do func() error) error {
	if len(dryRun) > 0 {
		return do()
	}
	answer := w.Object
	w.Object = copyOf(answer)
	send := func(context.Context, *write.Write) (write.Object, error) {
		if err := do(); err != nil || w.Verb == write.Delete || w.Verb == write.Evict {
			return nil, err
		}
		return copyOf(answer), nil // the caller may change its object
	}
	_, err := driver.Recording(send, r.Owner, r.Ledgers...)(ctx, &w)
	return err
}

func copyOf(object write.Object) write.Object { //nolint:ireturn // whichever type the object is of
	made, _ := object.DeepCopyObject().(write.Object)
	return made
}

// Create implements client.Client.
func (r *Recording) Create(ctx context.Context, object client.Object, o ...client.CreateOption) error {
	dryRun := (&client.CreateOptions{}).ApplyOptions(o).DryRun
	return r.record(ctx, write.Write{Verb: write.Create, Object: object}, dryRun, func() error {
		return r.Client.Create(ctx, object, o...)
	})
}

// Update implements client.Client.
func (r *Recording) Update(ctx context.Context, object client.Object, o ...client.UpdateOption) error {
	dryRun := (&client.UpdateOptions{}).ApplyOptions(o).DryRun
	return r.record(ctx, write.Write{Verb: write.Patch, Object: object}, dryRun, func() error {
		return r.Client.Update(ctx, object, o...)
	})
}

// Patch implements client.Client.
func (r *Recording) Patch(ctx context.Context, object client.Object, p client.Patch, o ...client.PatchOption) error {
	dryRun := (&client.PatchOptions{}).ApplyOptions(o).DryRun
	w := write.Write{Verb: write.Patch, Object: object, Type: p.Type()}
	return r.record(ctx, w, dryRun, func() error { return r.Client.Patch(ctx, object, p, o...) })
}

// Delete implements client.Client.
func (r *Recording) Delete(ctx context.Context, object client.Object, o ...client.DeleteOption) error {
	dryRun := (&client.DeleteOptions{}).ApplyOptions(o).DryRun
	return r.record(ctx, write.Write{Verb: write.Delete, Object: object}, dryRun, func() error {
		return r.Client.Delete(ctx, object, o...)
	})
}

var errUnrecorded = errors.New("the answer names no object to record: use another method, or the Client itself")

// Apply returns an error.
func (*Recording) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errUnrecorded
}

// DeleteAllOf returns an error.
func (*Recording) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errUnrecorded
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
	w := write.Write{Verb: write.Evict, Object: object}
	return s.of.record(ctx, w, all.DryRun, func() error { return s.SubResourceClient.Create(ctx, object, body, o...) })
}

// Update implements client.SubResourceWriter.
func (s *recordingSubresource) Update(
	ctx context.Context, object client.Object, o ...client.SubResourceUpdateOption,
) error {
	all := (&client.SubResourceUpdateOptions{}).ApplyOptions(o)
	w := write.Write{Verb: write.Patch, Object: cmp.Or(all.SubResourceBody, object), Subresource: s.name}
	return s.of.record(ctx, w, all.DryRun, func() error { return s.SubResourceClient.Update(ctx, object, o...) })
}

// Patch implements client.SubResourceWriter.
func (s *recordingSubresource) Patch(
	ctx context.Context, object client.Object, p client.Patch, o ...client.SubResourcePatchOption,
) error {
	all := (&client.SubResourcePatchOptions{}).ApplyOptions(o)
	w := write.Write{Verb: write.Patch, Object: cmp.Or(all.SubResourceBody, object), Subresource: s.name, Type: p.Type()}
	return s.of.record(ctx, w, all.DryRun, func() error { return s.SubResourceClient.Patch(ctx, object, p, o...) })
}

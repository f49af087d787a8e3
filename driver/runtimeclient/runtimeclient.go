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
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/revision"
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
		return answered(object, live.Get(ctx, client.ObjectKeyFromObject(object), object))
	}
}

// Send sends a write, and returns the object as the API server answered; nil for a deletion. The object of the write
// stays as it is. Errors are those of the client: see write.IsOutdated.
func Send( //nolint:ireturn // of any type
	ctx context.Context, c client.Client, w *write.Write,
) (write.Object, error) {
	switch w.Verb {
	case write.Create:
		return create(ctx, c, w)
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

func create(ctx context.Context, c client.Client, w *write.Write) (write.Object, error) { //nolint:ireturn // as Send
	object, options := copyOf(w.Object), &client.CreateOptions{FieldManager: w.FieldOwner}
	if !revision.HasUnknownFields(object) {
		return answered(object, c.Create(ctx, object, options))
	}
	gvk, err := c.GroupVersionKindFor(object)
	fields, failed := revision.WithUnknownFields(object)
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("send write: %w", err)
	}
	untyped := &unstructured.Unstructured{Object: fields}
	untyped.SetGroupVersionKind(gvk)
	if err := c.Create(ctx, untyped, options); err != nil {
		return nil, err
	}
	object = answer(w.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(untyped.Object, object); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return object, nil
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
	return answered(object, err)
}

// answered returns the object that an answer was decoded into, and none with an error.
func answered(object write.Object, err error) (write.Object, error) { //nolint:ireturn // as Send
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

// Queue is the queue of a controller, which a reconciler watches as a source without events:
//
//	controller.Watch(&r.Queue)
type Queue struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start takes the queue of the controller.
func (q *Queue) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = queue
	return nil
}

// Result is what a reconciler returns. A controller ignores when to look again where there is also an error, and
// retries after the back-off of the request, which may be a minute. An error of one object must not hold up another one
// that waits for less: the request then comes back for both.
func (q *Queue) Result(request reconcile.Request, after time.Duration, err error) (reconcile.Result, error) {
	if err == nil {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue != nil && after > 0 {
		q.queue.AddAfter(request, after)
	}
	return reconcile.Result{}, err
}

// Requeue adds the request of another object than the one that is reconciled. A controller that has not started drops
// it.
func (q *Queue) Requeue(request reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue != nil {
		q.queue.Add(request)
	}
}

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

func copyOf(object write.Object) write.Object { //nolint:ireturn // of any type
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

// Package binding connects a reconciler with its clients, its clock and its recorder of events, once.
//
//	r.api, err = binding.New("cloneset", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
//	r.writes = ledger.New[*corev1.Pod](r.api.Live, r.api.Now)
//	...
//	return r.api.Bind(mgr, "cloneset-controller", o).For(...).Complete(r)
//
// Awaited adds reconcilers to a manager when the API server serves their kinds.
//
// What the options leave open comes from the manager. Live is the same reader before and after, so that a ledger that
// is made with it follows.
package binding

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// Options are those that every reconciler has.
type Options struct {
	// Live reads past the cache; nil for the reader of the manager.
	Live client.Reader
	// Recorder emits events; nil for the recorder of the manager.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// Binding is what a reconciler reads and writes with.
type Binding struct {
	runtimeclient.Queue

	// Client reads typed objects from the cache.
	Client client.Client
	// Cached reads any object from the cache, also untyped ones.
	Cached client.Reader
	// Live reads past the cache.
	Live client.Reader
	// Now is the clock.
	Now func() time.Time

	live     client.Reader
	recorder driver.EventRecorder
}

// New binds a reconciler to a client. Without a manager, the client also stands for the cache and for the API server.
func New(reconciler string, c client.Client, o Options) (*Binding, error) {
	if c == nil {
		return nil, fmt.Errorf("%s: a client is needed", reconciler)
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	b := &Binding{Client: c, Cached: c, Now: o.Now, live: o.Live, recorder: o.Recorder}
	b.Live = liveReader{b}
	return b, nil
}

// Bind takes from a manager what the options left open, and starts the builder of the controller.
func (b *Binding) Bind(mgr ctrl.Manager, controllerName string, o controller.Options) *builder.Builder {
	b.Cached = mgr.GetCache()
	if b.live == nil {
		b.live = mgr.GetAPIReader()
	}
	if b.recorder == nil {
		b.recorder = mgr.GetEventRecorderFor(controllerName)
	}
	return ctrl.NewControllerManagedBy(mgr).Named(controllerName).WithOptions(
		ControllerOptions(o)).WatchesRawSource(&b.Queue)
}

// Event emits an event. It comes after the write that it announces.
func (b *Binding) Event(object runtime.Object, eventType, reason, message string) {
	if b.recorder != nil {
		b.recorder.Event(object, eventType, reason, message)
	}
}

// Normalf emits an event of the type Normal.
func (b *Binding) Normalf(object runtime.Object, reason, format string, args ...any) {
	b.Event(object, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
}

// Warningf emits an event of the type Warning.
func (b *Binding) Warningf(object runtime.Object, reason, format string, args ...any) {
	b.Event(object, corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...))
}

// EmitNotes emits notes as events, with their codes as the reasons. One that is blocked is a warning.
func (b *Binding) EmitNotes(object runtime.Object, notes ...note.Note) {
	if b.recorder != nil {
		driver.EmitNotes(b.recorder, object, notes...)
	}
}

// liveReader reads from what is bound when it is asked.
type liveReader struct{ of *Binding }

func (l liveReader) reader() client.Reader {
	if l.of.live != nil {
		return l.of.live
	}
	return l.of.Client
}

// Get implements client.Reader.
func (l liveReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	return l.reader().Get(ctx, key, into, o...)
}

// List implements client.Reader.
func (l liveReader) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	return l.reader().List(ctx, into, o...)
}

// Installed reports whether the API server serves a kind.
func Installed(mapper meta.RESTMapper, gvk schema.GroupVersionKind) (bool, error) {
	_, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up %s: %w", gvk.Kind, err)
	}
	return true, nil
}

// SharedIndex ignores the error of an index that another reconciler of the same manager has added before. The name of
// the index must be one of ours, so that the index is the same.
func SharedIndex(err error) error {
	if err != nil && strings.Contains(err.Error(), "indexer conflict") {
		return nil
	}
	return err
}

// Run makes a pass of an object, and records its writes in ledgers.
func (b *Binding) Run(
	ctx context.Context, owner types.NamespacedName, pass driver.Pass[*write.Write], ledgers ...driver.Recorder,
) error {
	return driver.Run(ctx, pass, driver.Options[*write.Write]{
		Send: runtimeclient.Sender(b.Client, b.Live), Now: b.Now, Owner: owner, Ledgers: ledgers,
	})
}

// Send sends a write, and records it in ledgers as one of an object.
func (b *Binding) Send( //nolint:ireturn // as driver.Send
	ctx context.Context, owner types.NamespacedName, w *write.Write, ledgers ...driver.Recorder,
) (write.Object, error) {
	return driver.Recording(runtimeclient.Sender(b.Client, b.Live), owner, ledgers...)(ctx, w)
}

// Answer is what the API server answered to a write.
type Answer struct {
	Object write.Object
	Err    error
}

// SendEach sends writes that are independent of each other, in parallel, and returns the answers in the order of the
// writes. A refusal stops no other write; where the first write is a creation, a refusal stops all, as the objects are
// alike. Where the API server fails, the last writes are not sent and have no answer.
func (b *Binding) SendEach(
	ctx context.Context, owner types.NamespacedName, writes []*write.Write, ledgers ...driver.Recorder,
) []Answer {
	answers := make([]Answer, len(writes))
	places := make([]int, len(writes))
	for i := range places {
		places[i] = i
	}
	send := func(i int) (err error) {
		answers[i].Object, err = b.Send(ctx, owner, writes[i], ledgers...)
		return err
	}
	var sent driver.Results
	if len(writes) > 0 && writes[0].Verb == write.Create {
		sent = driver.Alike(places, send)
	} else {
		sent = driver.Each(places, send)
	}
	for i, err := range sent {
		answers[i].Err = err
	}
	return answers[:len(sent)]
}

// WriteEach sends writes as SendEach does, and returns what failed. A write whose object has changed since the plan has
// not failed.
func (b *Binding) WriteEach(
	ctx context.Context, owner types.NamespacedName, writes []*write.Write, ledgers ...driver.Recorder,
) error {
	var failed []error
	for i, answer := range b.SendEach(ctx, owner, writes, ledgers...) {
		if answer.Err != nil && !write.IsOutdated(answer.Err) {
			failed = append(failed, fmt.Errorf("%s: %w", writes[i], answer.Err))
		}
	}
	return errors.Join(failed...)
}

// DeleteEach sends deletions as SendEach does, and returns the objects that are gone, and what failed.
func (b *Binding) DeleteEach(
	ctx context.Context, owner types.NamespacedName, deletions []*write.Write, ledgers ...driver.Recorder,
) (gone []write.Object, err error) {
	var failed []error
	for i, answer := range b.SendEach(ctx, owner, deletions, ledgers...) {
		if client.IgnoreNotFound(answer.Err) != nil {
			failed = append(failed, fmt.Errorf("%s: %w", deletions[i], answer.Err))
			continue
		}
		gone = append(gone, deletions[i].Object)
	}
	return gone, errors.Join(failed...)
}

// The pauses after failures. The cause of a failure, such as a quota, may end without an event: a user then waits
// for mostPause.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = time.Minute
)

// ControllerOptions defaults what is not set: a failed request is retried after pauses that grow up to a minute, and
// two managers of a process may have controllers of the same name.
func ControllerOptions(o controller.Options) controller.Options {
	if o.SkipNameValidation == nil {
		o.SkipNameValidation = ptr.To(true)
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastPause, mostPause)
	}
	return o
}

// Direct returns a handler that does what handler.Funcs does, but asks reflection nothing at an event of an object that
// has changed: with a dozen handlers of pods, those questions are a twentieth of the CPU time of a rollout. What a
// start lists and a resync repeats gets a lower priority, as with handler.Funcs.
func Direct(f handler.Funcs) handler.EventHandler { return direct{f} }

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

type direct struct{ handler.Funcs }

// Create calls the function of an object that is new.
func (d direct) Create(ctx context.Context, e event.CreateEvent, q queue) {
	if e.IsInInitialList || d.CreateFunc == nil {
		d.Funcs.Create(ctx, e, q)
		return
	}
	d.CreateFunc(ctx, e, q)
}

// Update calls the function of an object that has changed.
func (d direct) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	if d.UpdateFunc == nil || !changed(e.ObjectOld, e.ObjectNew) {
		d.Funcs.Update(ctx, e, q)
		return
	}
	d.UpdateFunc(ctx, e, q)
}

func changed(before, after client.Object) bool {
	return before != nil && after != nil && before.GetResourceVersion() != after.GetResourceVersion()
}

package driver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// Request is what a pass asks for: a *write.Write, or a type that embeds one and says more about it.
type Request interface {
	Request() *write.Write
}

// Pass is one pass of a controller as a value. Requests are of type W.
type Pass[W Request] interface {
	// Next returns the next requests, and nil at the end of the pass. They are independent of each other. It is called
	// when no request is under way.
	Next() []W
	// Answer takes what was answered to a request: the object as it is now, or the error. It returns the requests that
	// follow from the answer. now is the time of the answer.
	Answer(now time.Time, request W, object write.Object, err error) []W
	// Err returns what failed; nil for nothing.
	Err() error
}

// Send sends a write, and returns the object as the API server answered; nil for a deletion. It is called from several
// goroutines.
type Send func(context.Context, *write.Write) (write.Object, error)

// Recorder keeps what the API server answered until the caches show it. A ledger.Ledger is one.
type Recorder interface {
	// Record takes the answer to a write for an owner. It ignores objects of other types than its own.
	Record(owner types.NamespacedName, w *write.Write, answer write.Object, err error)
}

// Recording returns a Send that records each answer in the ledgers, under the name of an owner, before it returns the
// answer. Run records so what Options.Ledgers has; a controller with writes outside of passes records them with it.
func Recording(send Send, owner types.NamespacedName, ledgers ...Recorder) Send {
	return func(ctx context.Context, w *write.Write) (write.Object, error) {
		object, err := send(ctx, w)
		if w.Verb != write.Get {
			for _, l := range ledgers {
				l.Record(owner, w, object, err)
			}
		}
		return object, err
	}
}

// Options of a run.
type Options[W Request] struct {
	// Send sends the writes, and reads for the questions to the API server.
	Send Send
	// Ask answers the questions of the pass that the API server does not answer. Nil fails them.
	Ask func(context.Context, W) error
	// Owner is the object that the pass is about. The answers to its writes are recorded under its name.
	Owner types.NamespacedName
	// Ledgers record the answers, one ledger for each kind of object that is read from a cache.
	Ledgers []Recorder
	// Answered is called after each answer, before the pass takes it, as for events. Nil for no call.
	Answered func(request W, object write.Object, err error)
	// Now is the clock of the answers; nil for time.Now.
	Now func() time.Time
}

// Run sends what a pass asks for until nothing is left, and returns what failed, as the pass reports it. A pass that
// is outdated has not failed: observe again, and make another one.
func Run[W Request](ctx context.Context, pass Pass[W], o Options[W]) error {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of Options
	}
	o.Send = Recording(o.Send, o.Owner, o.Ledgers...)
	var mu sync.Mutex
	answer := func(request W, object write.Object, err error) []W {
		mu.Lock()
		defer mu.Unlock()
		return pass.Answer(o.Now(), request, object, err)
	}
	var panicked []error
	for requests := pass.Next(); len(requests) > 0 && panicked == nil; requests = pass.Next() {
		send := func(request W) error { return o.follow(ctx, request, answer) }
		run := Each[W]
		if requests[0].Request().Verb == write.Create {
			run = Alike[W]
		}
		for _, err := range run(requests, send) { // the pass has the other failures
			if errors.As(err, new(*PanicError)) {
				panicked = append(panicked, err)
			}
		}
	}
	return errors.Join(append(panicked, pass.Err())...)
}

// follow sends a request, and then those that follow from the answers. The error is that of a request that nothing
// follows.
func (o *Options[W]) follow(ctx context.Context, first W, answer func(W, write.Object, error) []W) error {
	for requests := []W{first}; len(requests) > 0; {
		object, err := o.send(ctx, requests[0])
		next := answer(requests[0], object, err)
		if err != nil && len(next) == 0 && len(requests) == 1 {
			return err
		}
		requests = append(requests[1:], next...)
	}
	return nil
}

// errNoAnswer is the answer to a question where Options.Ask is nil.
var errNoAnswer = errors.New("the driver has no answer to questions")

// send sends one request.
func (o *Options[W]) send(ctx context.Context, request W) (write.Object, error) { //nolint:ireturn // as Send
	w := request.Request()
	if w.Verb == write.Ask {
		if o.Ask == nil {
			return nil, errNoAnswer
		}
		return nil, o.Ask(ctx, request)
	}
	object, err := o.Send(ctx, w)
	if o.Answered != nil {
		o.Answered(request, object, err)
	}
	return object, err
}

// EventRecorder emits events. The recorder of a controller-runtime manager and record.EventRecorder of client-go are
// EventRecorders.
type EventRecorder interface {
	Event(object runtime.Object, eventType, reason, message string)
}

// EmitNotes emits notes about an object as events, with their codes as the reasons. One that is blocked is a warning.
func EmitNotes(r EventRecorder, object runtime.Object, notes ...note.Note) {
	for _, n := range notes {
		kind := corev1.EventTypeNormal
		if n.Level == note.Blocked {
			kind = corev1.EventTypeWarning
		}
		r.Event(object, kind, n.Code, n.Text)
	}
}

// Eviction returns what is sent for a write with the verb write.Evict: the eviction of its pod, with the preconditions
// of a deletion.
func Eviction(w *write.Write) *policyv1.Eviction {
	options := w.DeleteOptions()
	return &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: w.Object.GetNamespace(), Name: w.Object.GetName()},
		DeleteOptions: &options,
	}
}

// most is the largest number of items of a batch.
const most = 64

// Results are what the calls for the first items returned, in the order of the items. Items after these were not tried.
type Results []error

// Err joins the errors.
func (r Results) Err() error { return errors.Join(r...) }

// Alike calls do for the items, first for one, then for twice as many at a time. No batch starts after one with
// an error, except that an object of the same name exists.
func Alike[T any](items []T, do func(T) error) Results {
	return run(items, do, func(batch []error) bool {
		return slices.ContainsFunc(batch, func(err error) bool { return err != nil && !apierrors.IsAlreadyExists(err) })
	})
}

// Each is Alike, except that an item whose write is refused stops no other item. Only an error that does not concern
// one request alone stops further batches, as of an API server that is overloaded or does not answer.
func Each[T any](items []T, do func(T) error) Results {
	return run(items, do, func(batch []error) bool {
		return slices.ContainsFunc(batch, func(err error) bool {
			return err != nil && !write.IsRefused(err) && !errors.As(err, new(*PanicError))
		})
	})
}

// Isolated is Each for items in namespaces of their own: an error of any kind stops no other item. Where more than the
// size of the largest batch fail one after the other, and not because a write is refused, the API server is taken to be
// down, and no further batch starts.
func Isolated[T any](items []T, do func(T) error) Results {
	failed := 0
	return run(items, do, func(batch []error) bool {
		for _, err := range batch {
			if failed++; err == nil || write.IsRefused(err) {
				failed = 0
			}
		}
		return failed >= most
	})
}

func run[T any](items []T, do func(T) error, stops func(batch []error) bool) Results {
	var results Results
	for size, stopped := 1, false; len(results) < len(items) && !stopped; size = min(2*size, most) {
		batch := items[len(results):min(len(results)+size, len(items))]
		errs := make([]error, len(batch))
		var group sync.WaitGroup
		for i, item := range batch {
			group.Add(1)
			go func() {
				defer group.Done()
				errs[i] = Recovered(func() error { return do(item) })
			}()
		}
		group.Wait()
		results, stopped = append(results, errs...), stops(errs)
	}
	return results
}

// PanicError is a panic in the call for one item.
type PanicError struct {
	Value any
	// Place is the file and the line.
	Place string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v, in %s", e.Value, e.Place) }

// Recovered returns what a call returns, and a panic as a PanicError.
func Recovered(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, place()}
		}
	}()
	return do()
}

// place returns where the code panicked that is about to recover: the first caller below the machinery of panics.
func place() string {
	callers := make([]uintptr, 64)
	frames := goruntime.CallersFrames(callers[:goruntime.Callers(3, callers)]) // without place and the deferred function
	frame, more := frames.Next()
	for more && strings.HasPrefix(frame.Function, "runtime.") {
		frame, more = frames.Next()
	}
	return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
}

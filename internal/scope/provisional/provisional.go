// Package provisional writes the entry of a SidecarSet before the set is stored, so that pods created right after it
// are sent to their webhook. Every replica may write one, with or without a leader.
//
//	w, err := provisional.New(client, provisional.Options{})
//	...
//	if err := w.Cover(ctx, set); err != nil {
//		warn(err)
//	}
//
// The entries have a configuration of their own, so that API servers compile no other condition again. They are ignored
// where no replica answers, at most 8 at a time, and the leader removes them: see package entries.
//
// Laws:
//   - At most one write for a set, which adds its entry, or replaces that of an earlier state of the same set. No other
//     entry changes.
//   - Cover returns within Options.Timeout. A set for which there is no room waits for as long; the sets before it do
//     not. After an error the set is covered once the leader has reconciled it.
//   - A review that no API server has sent can add entries of the same kind, and no others: they reject no pod, and end
//     after seconds.
//
// What remains open: no API server acknowledges an entry, so that Cover waits for Options.Pause after the write. A pod
// goes without a new set where its API server takes longer, where no replica answers in time, and where more than 8
// sets wait for longer than Options.Timeout.
package provisional

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// DefaultTimeout bounds the delay of an admission of a set.
	DefaultTimeout = time.Second
	// DefaultPause is the time for API servers to see the entry: each watches the configurations itself.
	DefaultPause = 100 * time.Millisecond

	// most entries at a time.
	most = 8
	// mostBytes of an entry.
	mostBytes = 32 << 10
	// look is the pause between two looks for room.
	look = 100 * time.Millisecond
	// tries of a write that conflicts.
	tries = 6
)

// API is the methods of client.Client that a Writer calls. It must read past any cache.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// Options of a Writer. The zero value is for a deployment under the names of the reference.
type Options struct {
	// Configuration is written, and created where it is missing. MainConfiguration has the CA.
	Configuration, MainConfiguration string
	// Reach is how API servers reach the webhook of pods. Pods of its namespace are never sent.
	Reach scope.Reach
	// Timeout bounds Cover, and Pause follows the write.
	Timeout, Pause time.Duration
}

// Writer covers sets. It is safe for concurrent use: sets that arrive during a write are written together next.
type Writer struct {
	api     API
	options Options
	// turn is held during a write.
	turn chan struct{}

	mu      sync.Mutex
	waiting []*request
}

// request is an entry to write.
type request struct {
	entry *admissionregistrationv1.MutatingWebhook
	done  chan struct{}
}

// New returns a Writer.
func New(api API, o Options) (*Writer, error) {
	if api == nil {
		return nil, errors.New("provisional: a client is required")
	}
	o.Configuration = cmp.Or(o.Configuration, scope.ProvisionalConfiguration)
	o.MainConfiguration = cmp.Or(o.MainConfiguration, scope.DefaultMainConfiguration)
	o.Reach.Namespace = cmp.Or(o.Reach.Namespace, scope.DefaultNamespace)
	o.Reach.Service = cmp.Or(o.Reach.Service, scope.DefaultService)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	return &Writer{api: api, options: o, turn: make(chan struct{}, 1)}, nil
}

// Cover makes API servers send the pods of a set to their webhook. The set must have its UID, as in a validating
// webhook.
func (w *Writer) Cover(ctx context.Context, set *appsv1beta1.SidecarSet) error {
	if set.UID == "" {
		return errors.New("the set has no UID yet")
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	entry, err := scope.Provisional(scope.Input{Client: w.options.Reach.Client(), Namespace: w.options.Reach.Namespace},
		set)
	if err != nil || entry == nil {
		return err
	}
	if entry.Size() > mostBytes {
		return fmt.Errorf("its selectors have more than %d bytes", mostBytes)
	}
	if err := w.enter(ctx, &request{entry, make(chan struct{})}); err != nil {
		return err
	}
	pause(ctx, w.options.Pause)
	return nil
}

// enter writes a request together with all that wait, or waits until another caller has written it. After an error the
// others write themselves, because the reason may be in this request.
func (w *Writer) enter(ctx context.Context, r *request) error {
	w.mu.Lock()
	w.waiting = append(w.waiting, r)
	w.mu.Unlock()
	defer w.leave(r)
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case w.turn <- struct{}{}:
	}
	defer func() {
		w.leave(r) // before the next turn: the next caller must not write what has failed
		<-w.turn
	}()
	for {
		w.mu.Lock()
		batch := slices.Clone(w.waiting)
		w.mu.Unlock()
		if !slices.Contains(batch, r) {
			return nil // written just now
		}
		written, err := w.write(ctx, batch)
		if err != nil {
			return err
		}
		w.leave(written...)
		for _, one := range written {
			close(one.done)
		}
		if slices.Contains(written, r) {
			return nil
		}
		if !pause(ctx, look) {
			return fmt.Errorf("%d sets wait already for a leader to cover them", most)
		}
	}
}

// pause reports whether the context goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *Writer) leave(gone ...*request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(r *request) bool { return slices.Contains(gone, r) })
}

// write writes what there is room for of a batch, and returns that.
func (w *Writer) write(ctx context.Context, batch []*request) (written []*request, err error) {
	for range tries {
		if written, err = w.try(ctx, batch); !again(err) {
			break
		}
	}
	return written, err
}

// try makes one write.
func (w *Writer) try(ctx context.Context, batch []*request) ([]*request, error) {
	have := &configuration{}
	err := w.api.Get(ctx, client.ObjectKey{Name: w.options.Configuration}, have)
	if apierrors.IsNotFound(err) {
		have, err = &configuration{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	chosen := fitting(have, batch)
	if len(chosen) == 0 {
		return nil, nil
	}
	ca, err := w.authority(ctx, have)
	if err != nil {
		return nil, err
	}
	next := plan(w.options.Configuration, have, chosen, ca)
	if next.Verb == write.Create {
		err = w.api.Create(ctx, next.Object.(client.Object)) //nolint:forcetypeassert // plan makes it
	} else {
		err = w.patch(ctx, next)
	}
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return chosen, nil
}

func (w *Writer) patch(ctx context.Context, next *write.Write) error {
	data, err := next.Data()
	if err != nil {
		return err
	}
	target := &configuration{}
	target.Name = next.Object.GetName()
	return w.api.Patch(ctx, target, client.RawPatch(next.Type, data))
}

// authority returns the CA for a service, from the entries of the configuration, or from the main configuration.
func (w *Writer) authority(ctx context.Context, have *configuration) ([]byte, error) {
	to := w.options.Reach.Client()
	if ca := scope.Authority(to, have); len(ca) > 0 || to.Service == nil {
		return ca, nil
	}
	other := &configuration{}
	if err := w.api.Get(ctx, client.ObjectKey{Name: w.options.MainConfiguration}, other); err != nil {
		return nil, fmt.Errorf("read the main configuration: %w", err)
	}
	ca := scope.Authority(to, other)
	if len(ca) == 0 {
		return nil, errors.New("there is no CA for the service in any configuration yet")
	}
	return ca, nil
}

// again reports whether the configuration has changed since it was read: a test failed, or it was created or deleted.
func again(err error) bool { return write.IsOutdated(err) || apierrors.IsAlreadyExists(err) }

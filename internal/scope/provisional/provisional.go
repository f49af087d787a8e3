// Package provisional writes the entry of a SidecarSet before the set is stored, so that pods created right after it are sent to their
// webhook. Every replica may write one, with or without a leader.
//
//	w, err := provisional.New(client, provisional.Options{})
//	...
//	if err := w.Cover(ctx, set); err != nil {
//		warn(err)
//	}
//
// Laws:
//   - At most one write for a set, which adds its entry, or replaces that of an earlier state of the same set. No other entry changes.
//   - Cover returns within Options.Timeout. After an error nothing has changed, and the set is covered once the leader has reconciled it.
//   - The number of provisional entries is bounded. The leader removes them: see controllers/podscope.
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
	"k8s.io/apimachinery/pkg/types"
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
	most = 64
	// tries of a write that conflicts.
	tries = 6
)

// API is the methods of client.Client that a Writer calls. It must read past any cache.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// Options of a Writer. The zero value is for a deployment under the names of the reference.
type Options struct {
	// Configuration is written, and MainConfiguration has the CA.
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
	o.Configuration = cmp.Or(o.Configuration, scope.DefaultConfiguration)
	o.MainConfiguration = cmp.Or(o.MainConfiguration, scope.DefaultMainConfiguration)
	o.Reach.Namespace = cmp.Or(o.Reach.Namespace, scope.DefaultNamespace)
	o.Reach.Service = cmp.Or(o.Reach.Service, scope.DefaultService)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	return &Writer{api: api, options: o, turn: make(chan struct{}, 1)}, nil
}

// Cover makes API servers send the pods of a set to their webhook. The set must have its UID, as in a validating webhook.
func (w *Writer) Cover(ctx context.Context, set *appsv1beta1.SidecarSet) error {
	if set.UID == "" {
		return errors.New("the set has no UID yet")
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	entry, err := scope.Provisional(scope.Input{Client: w.options.Reach.Client(), Namespace: w.options.Reach.Namespace}, set)
	if err != nil || entry == nil {
		return err
	}
	if err := w.enter(ctx, &request{entry, make(chan struct{})}); err != nil {
		return err
	}
	learn := time.NewTimer(w.options.Pause)
	defer learn.Stop()
	select {
	case <-learn.C:
	case <-ctx.Done():
	}
	return nil
}

// enter writes a request together with all that wait, or waits until another caller has written it. After an error the others write
// themselves, because the reason may be in this request.
func (w *Writer) enter(ctx context.Context, r *request) error {
	w.mu.Lock()
	w.waiting = append(w.waiting, r)
	w.mu.Unlock()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		w.leave(r)
		return ctx.Err()
	case w.turn <- struct{}{}:
	}
	defer func() { <-w.turn }()
	w.mu.Lock()
	batch := slices.Clone(w.waiting)
	w.mu.Unlock()
	if !slices.Contains(batch, r) {
		return nil // written just now
	}
	entries := latest(batch)
	var err error
	for range tries {
		if err = w.write(ctx, entries); !again(err) {
			break
		}
	}
	if err != nil {
		w.leave(r)
		return err
	}
	w.leave(batch...)
	for _, one := range batch {
		close(one.done)
	}
	return nil
}

func (w *Writer) leave(gone ...*request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(r *request) bool { return slices.Contains(gone, r) })
}

// latest returns the entries of a batch, one for each set.
func latest(batch []*request) []*admissionregistrationv1.MutatingWebhook {
	var all []*admissionregistrationv1.MutatingWebhook
	for _, r := range batch {
		all = slices.DeleteFunc(all, func(e *admissionregistrationv1.MutatingWebhook) bool { return e.Name == r.entry.Name })
		all = append(all, r.entry)
	}
	return all
}

// write tries once.
func (w *Writer) write(ctx context.Context, entries []*admissionregistrationv1.MutatingWebhook) error {
	have := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := w.api.Get(ctx, client.ObjectKey{Name: w.options.Configuration}, have); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	ca, err := w.authority(ctx, have)
	if err != nil {
		return err
	}
	patch, err := plan(have, entries, ca)
	if err != nil {
		return err
	}
	target := &admissionregistrationv1.MutatingWebhookConfiguration{}
	target.Name = have.Name
	if err := w.api.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// authority returns the CA for a service, from the entries of the configuration, or from the main configuration.
func (w *Writer) authority(ctx context.Context, have *admissionregistrationv1.MutatingWebhookConfiguration) ([]byte, error) {
	to := w.options.Reach.Client()
	if ca := scope.Authority(to, have); len(ca) > 0 || to.Service == nil {
		return ca, nil
	}
	other := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := w.api.Get(ctx, client.ObjectKey{Name: w.options.MainConfiguration}, other); err != nil {
		return nil, fmt.Errorf("read the main configuration: %w", err)
	}
	ca := scope.Authority(to, other)
	if len(ca) == 0 {
		return nil, errors.New("there is no CA for the service in any configuration yet")
	}
	return ca, nil
}

// plan returns the patch that adds entries. Added entries depend on no others, so that replicas do not conflict: API servers apply such
// a patch again to what another replica has written.
func plan(have *admissionregistrationv1.MutatingWebhookConfiguration, entries []*admissionregistrationv1.MutatingWebhook, ca []byte) ([]byte, error) {
	at := map[string]int{}
	there := 0
	for i := range have.Webhooks {
		at[have.Webhooks[i].Name] = i
		if scope.IsProvisional(have.Webhooks[i].Name) {
			there++
		}
	}
	var replaced, added []write.Op
	for _, e := range entries {
		e = e.DeepCopy()
		e.ClientConfig.CABundle = ca
		if i, found := at[e.Name]; found {
			replaced = append(replaced, write.Replace(fmt.Sprintf("/webhooks/%d", i), e))
			continue
		}
		added = append(added, write.Add("/webhooks/-", e))
	}
	if len(added) > 0 && there+len(added) > most {
		return nil, fmt.Errorf("%d sets wait already for a leader to cover them", there)
	}
	patch := slices.Concat(replaced, added)
	if len(have.Webhooks) == 0 {
		patch = append([]write.Op{write.Add("/webhooks", []string{})}, patch...)
	}
	if len(replaced) > 0 || len(have.Webhooks) == 0 {
		patch = append([]write.Op{write.Test("/metadata/resourceVersion", have.ResourceVersion)}, patch...)
	}
	return write.Encode(patch)
}

// again reports whether the configuration has changed since it was read: a test failed, or an entry of the name exists.
func again(err error) bool { return apierrors.IsConflict(err) || apierrors.IsInvalid(err) }

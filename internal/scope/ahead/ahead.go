// Package ahead writes the entry of a SidecarSet before the set is there, so that the pods that come right after it are sent to
// their webhook. Every replica may do so, whether or not anybody leads.
//
//	w, err := ahead.New(client, ahead.Options{})
//	...
//	if err := w.Cover(ctx, set); err != nil {
//		warn(err)
//	}
//
// Laws:
//   - At most one write for a set, which adds its entry, or replaces that of an earlier state of the same set. Nothing else is
//     touched.
//   - It takes no longer than Options.Timeout. An error leaves things as they were, and the set is covered when a leader has
//     seen it.
//   - There are never more such entries than API servers bear. Whoever leads takes them away: see controllers/podscope.
package ahead

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
	// DefaultTimeout is what the creation of a set is held up at most.
	DefaultTimeout = time.Second
	// DefaultPause is what API servers get to learn of the entry: each follows the configurations by a watch of its own, and
	// goes by what it has seen.
	DefaultPause = 100 * time.Millisecond

	// most entries that wait for a leader.
	most = 64
	// tries to write while others write the same object.
	tries = 6
)

// API is what a Writer asks of the API server; client.Client has it. It must read past any cache.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// Options of a Writer. The zero value is for a deployment under the names of the reference.
type Options struct {
	// Configuration is the one that is written, and MainConfiguration the one that a CA is taken from.
	Configuration, MainConfiguration string
	// Reach is how API servers reach the webhook of pods. Its namespace is that whose pods are never sent.
	Reach scope.Reach
	// Timeout of all, and Pause after the write.
	Timeout, Pause time.Duration
}

// Writer covers sets. It may be used by several goroutines: sets that come while it writes are written together next.
type Writer struct {
	api     API
	options Options
	// turn is held by whoever writes.
	turn chan struct{}

	mu      sync.Mutex
	waiting []*request
}

// request is an entry that is to be written.
type request struct {
	entry *admissionregistrationv1.MutatingWebhook
	done  chan struct{}
}

// New makes a Writer.
func New(api API, o Options) (*Writer, error) {
	if api == nil {
		return nil, errors.New("ahead: a client is needed")
	}
	o.Configuration = cmp.Or(o.Configuration, scope.DefaultConfiguration)
	o.MainConfiguration = cmp.Or(o.MainConfiguration, scope.DefaultMainConfiguration)
	o.Reach.Namespace = cmp.Or(o.Reach.Namespace, scope.DefaultNamespace)
	o.Reach.Service = cmp.Or(o.Reach.Service, scope.DefaultService)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	return &Writer{api: api, options: o, turn: make(chan struct{}, 1)}, nil
}

// Cover has the pods of a set sent to their webhook from now on. The set has its UID, as it has for a webhook that validates.
func (w *Writer) Cover(ctx context.Context, set *appsv1beta1.SidecarSet) error {
	if set.UID == "" {
		return errors.New("the set has no UID yet")
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	entry, err := scope.Ahead(scope.Input{Client: w.options.Reach.Client(), Namespace: w.options.Reach.Namespace}, set)
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

// enter has a request written, by whoever has the turn. Who cannot write all that waits leaves it to those who wait, for
// the reason may be his own.
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

// latest are the entries of a batch, one for each set.
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

// authority is whom API servers are to trust: of a service, as the entries that are there have it, or the main configuration.
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

// plan is the patch that puts entries in. Entries that are added depend on no others, so that replicas are not in each other's
// way: API servers themselves apply such a patch again to what another has written.
func plan(have *admissionregistrationv1.MutatingWebhookConfiguration, entries []*admissionregistrationv1.MutatingWebhook, ca []byte) ([]byte, error) {
	at := map[string]int{}
	ahead := 0
	for i := range have.Webhooks {
		at[have.Webhooks[i].Name] = i
		if scope.IsAhead(have.Webhooks[i].Name) {
			ahead++
		}
	}
	var replaced, added []write.Op
	for _, e := range entries {
		e = e.DeepCopy()
		e.ClientConfig.CABundle = ca
		if i, there := at[e.Name]; there {
			replaced = append(replaced, write.Replace(fmt.Sprintf("/webhooks/%d", i), e))
			continue
		}
		added = append(added, write.Add("/webhooks/-", e))
	}
	if len(added) > 0 && ahead+len(added) > most {
		return nil, fmt.Errorf("%d sets wait already for a leader to cover them", ahead)
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

// again says that the configuration has become another one meanwhile: a test did not hold, or an entry of the name is there.
func again(err error) bool { return apierrors.IsConflict(err) || apierrors.IsInvalid(err) }

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
//   - One write for a set, which adds its entry, or replaces that of an earlier state of the same set. Nothing else is touched.
//   - It takes no longer than Options.Timeout. An error leaves things as they were, and the set is covered when a leader has
//     seen it.
//   - There are never more such entries than API servers bear. Whoever leads takes them away: see controllers/podscope.
package ahead

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
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

// Writer covers sets.
type Writer struct {
	api     API
	options Options
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
	return &Writer{api: api, options: o}, nil
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
	for range tries {
		if err = w.write(ctx, entry); !again(err) {
			break
		}
	}
	if err != nil {
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

// write tries once.
func (w *Writer) write(ctx context.Context, entry *admissionregistrationv1.MutatingWebhook) error {
	have := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := w.api.Get(ctx, client.ObjectKey{Name: w.options.Configuration}, have); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	entry = entry.DeepCopy()
	if entry.ClientConfig.CABundle = scope.Authority(w.options.Reach.Client(), have); entry.ClientConfig.Service != nil && len(entry.ClientConfig.CABundle) == 0 {
		main := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := w.api.Get(ctx, client.ObjectKey{Name: w.options.MainConfiguration}, main); err != nil {
			return fmt.Errorf("read the main configuration: %w", err)
		}
		if entry.ClientConfig.CABundle = scope.Authority(w.options.Reach.Client(), main); len(entry.ClientConfig.CABundle) == 0 {
			return errors.New("there is no CA for the service in any configuration yet")
		}
	}
	patch, err := plan(have, entry)
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

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// plan is the patch that puts one entry in. An entry that is added depends on no other, so that sets that come at the same
// time are not in each other's way: API servers themselves apply the patch again to what another has written.
func plan(have *admissionregistrationv1.MutatingWebhookConfiguration, entry *admissionregistrationv1.MutatingWebhook) ([]byte, error) {
	ahead := 0
	at := -1
	for i := range have.Webhooks {
		if scope.IsAhead(have.Webhooks[i].Name) {
			ahead++
		}
		if have.Webhooks[i].Name == entry.Name {
			at = i
		}
	}
	var patch []operation
	switch same := (operation{"test", "/metadata/resourceVersion", have.ResourceVersion}); {
	case at >= 0:
		patch = []operation{same, {"replace", fmt.Sprintf("/webhooks/%d", at), entry}}
	case ahead >= most:
		return nil, fmt.Errorf("%d sets wait already for a leader to cover them", ahead)
	case len(have.Webhooks) == 0:
		patch = []operation{same, {"add", "/webhooks", []*admissionregistrationv1.MutatingWebhook{entry}}}
	default:
		patch = []operation{{"add", "/webhooks/-", entry}}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return data, nil
}

// again says that the configuration has become another one meanwhile: a test did not hold, or an entry of the name is there.
func again(err error) bool { return apierrors.IsConflict(err) || apierrors.IsInvalid(err) }

package scope

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

const (
	// DefaultCoverTimeout bounds the delay of an admission of a set.
	DefaultCoverTimeout = time.Second
	// defaultPause is the time for API servers to see the entry: each watches the configurations itself.
	defaultPause = 100 * time.Millisecond

	// maxProvisional at a time.
	maxProvisional = 32
	// maxProvisionalBytes of an entry.
	maxProvisionalBytes = 32 << 10
	// retry is the pause before the next try, after a conflict or without room.
	retry = 100 * time.Millisecond
)

// errNoRoom is returned while there are maxProvisional entries.
var errNoRoom = fmt.Errorf("%d sets wait already for a leader to cover them", maxProvisional)

type configuration = admissionregistrationv1.MutatingWebhookConfiguration

// API is the methods of client.Client that a Writer calls. It must read past any cache.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// WriterOptions are the options of a Writer. The zero value is for a deployment under the names of the reference.
type WriterOptions struct {
	// Configuration is written, and created where it is missing. MainConfiguration has the CA.
	Configuration, MainConfiguration string
	// Reach is how API servers reach the webhook of pods. Pods of its namespace are never sent.
	Reach Reach
	// Timeout bounds Cover, and Pause follows the write.
	Timeout, Pause time.Duration
}

// Writer writes the entry of a SidecarSet before the set is stored, so that pods created right after it are sent to
// their webhook. Every replica may write one, with or without a leader. It is safe for concurrent use.
//
// The entries have a configuration of their own, so that API servers compile no other condition again. They are ignored
// where no replica answers, at most 32 at a time, and the leader removes them: see controllers/podscope. Each is
// applied with a field manager of its own, so that writers of different sets change nothing of each other.
//
// Laws:
//   - One write for a set, which adds its entry, or replaces that of an earlier state of the same set. No other entry
//     changes.
//   - Cover returns within WriterOptions.Timeout. A set for which there is no room waits for as long. After an error
//     the set is covered once the leader has reconciled it.
//   - A review that no API server has sent can add entries of the same kind, and no others: they reject no pod, and end
//     after seconds.
//
// What remains open: no API server acknowledges an entry, so that Cover waits for WriterOptions.Pause after the write.
// A pod goes without a new set where its API server takes longer, where no replica answers in time, and where more than
// 32 sets wait for longer than WriterOptions.Timeout.
type Writer struct {
	api     API
	options WriterOptions
	turn    chan struct{}
}

// NewWriter returns a Writer.
func NewWriter(api API, o WriterOptions) (*Writer, error) {
	if api == nil {
		return nil, errors.New("scope: a client is required")
	}
	o.Configuration = cmp.Or(o.Configuration, ProvisionalConfiguration)
	o.MainConfiguration = cmp.Or(o.MainConfiguration, DefaultMainConfiguration)
	o.Reach.Namespace = cmp.Or(o.Reach.Namespace, DefaultNamespace)
	o.Reach.Service = cmp.Or(o.Reach.Service, DefaultService)
	o.Timeout = cmp.Or(o.Timeout, DefaultCoverTimeout)
	o.Pause = cmp.Or(o.Pause, defaultPause)
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
	own := Provisional(Input{Client: w.options.Reach.Client(), Namespace: w.options.Reach.Namespace}, set)
	if own == nil {
		return nil
	}
	if own.Size() > maxProvisionalBytes {
		return fmt.Errorf("its selectors have more than %d bytes", maxProvisionalBytes)
	}
	var err error
	_ = wait.PollUntilContextCancel(ctx, retry, true, func(ctx context.Context) (done bool, _ error) {
		err = w.write(ctx, own)
		return !apierrors.IsConflict(err) && !errors.Is(err, errNoRoom), nil
	})
	if err != nil {
		return err
	}
	pause, done := context.WithTimeout(ctx, w.options.Pause)
	defer done()
	<-pause.Done() // API servers notice the entry
	return nil
}

// write applies an entry, unless there is no room for it. It tests the version of the configuration whose entries it
// has counted.
func (w *Writer) write(ctx context.Context, own *entry) error {
	select { // one after the other, for writes at the same time conflict
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return fmt.Errorf("wait for the entries of other sets: %w", ctx.Err())
	}
	have := &configuration{}
	err := w.api.Get(ctx, client.ObjectKey{Name: w.options.Configuration}, have)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	others := slices.DeleteFunc(slices.Clone(have.Webhooks), func(e entry) bool {
		return !IsProvisional(e.Name) || e.Name == own.Name
	})
	if len(others) >= maxProvisional {
		return errNoRoom
	}
	applied := *own.DeepCopy()
	if applied.ClientConfig.CABundle, err = w.authority(ctx, have); err != nil {
		return err
	}
	next := &configuration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{Name: w.options.Configuration, ResourceVersion: have.ResourceVersion},
		Webhooks:   []entry{applied},
	}
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	target := &configuration{ObjectMeta: metav1.ObjectMeta{Name: w.options.Configuration}}
	err = w.api.Patch(ctx, target, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(own.Name),
		client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// authority returns the CA for a service, from the entries of the configuration, or from the main configuration.
func (w *Writer) authority(ctx context.Context, have *configuration) ([]byte, error) {
	to := w.options.Reach.Client()
	if ca := Authority(to, have); len(ca) > 0 || to.Service == nil {
		return ca, nil
	}
	other := &configuration{}
	if err := w.api.Get(ctx, client.ObjectKey{Name: w.options.MainConfiguration}, other); err != nil {
		return nil, fmt.Errorf("read the main configuration: %w", err)
	}
	ca := Authority(to, other)
	if len(ca) == 0 {
		return nil, errors.New("there is no CA for the service in any configuration yet")
	}
	return ca, nil
}

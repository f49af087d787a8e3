package templated

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
)

// API is what the webhooks ask of the API server; client.Client has it.
type API interface {
	client.Reader
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// TemplateNoDefaults leaves pod and claim templates as they were written.
	TemplateNoDefaults bool
	// HostNetworkHostPorts also sets the host ports in templates of pods in the host's network. It has no effect with
	// TemplateNoDefaults.
	HostNetworkHostPorts bool
	// Delete reviews deletions, as webhooks/deletion does. Nil allows them.
	Delete func(context.Context, admission.Request) admission.Response
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// Webhooks answer admission requests for one kind.
type Webhooks[T Object] struct {
	api     API
	kind    Kind[T]
	options Options
	passed  *tickets
}

// New makes the webhooks.
func New[T Object](api API, k Kind[T], o Options) (*Webhooks[T], error) {
	if api == nil {
		return nil, fmt.Errorf("the webhooks of %s need a client", k.Name)
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("a timeout of %s is over before it starts", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = podtemplate.DefaultTimeout
	}
	return &Webhooks[T]{api: api, kind: k, options: o, passed: &tickets{}}, nil
}

// Register serves the webhooks on the manager's webhook server.
func (w *Webhooks[T]) Register(mgr ctrl.Manager, mutatePath, validatePath string) error {
	return review.Serve(mgr, map[string]admission.HandlerFunc{mutatePath: w.Mutate, validatePath: w.Validate})
}

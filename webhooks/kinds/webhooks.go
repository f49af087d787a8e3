package kinds

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

// API is what webhooks ask of the API server; client.Client has it.
type API interface {
	client.Reader
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Options of the webhooks of a kind. The zero value behaves as the reference does by default.
type Options struct {
	// TemplateNoDefaults leaves pod and claim templates as they were written.
	TemplateNoDefaults bool
	// HostNetworkHostPorts also sets the host ports in templates of pods in the host's network. It has no effect with
	// TemplateNoDefaults.
	HostNetworkHostPorts bool
	// Delete reviews deletions at the path that validates, as webhooks/deletion does. Nil allows them.
	Delete func(context.Context, admission.Request) admission.Response
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// Webhooks are the handlers of admission requests by the paths that receive the requests.
type Webhooks map[string]admission.HandlerFunc

// SetupWithManager serves the webhooks on the manager's webhook server.
func (w Webhooks) SetupWithManager(mgr ctrl.Manager) error { return review.Serve(mgr, w) }

// New returns the webhooks of a row. The client may be nil for a row that reads nothing.
func New[T client.Object](api API, row Row[T], o Options) (Webhooks, error) {
	if api == nil && row.Closed == "" && (row.Template != nil || row.Lookup != nil || row.Admit != nil) {
		return nil, fmt.Errorf("the webhooks of %s need a client", row.Kind.Kind)
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("a timeout of %s is over before it starts", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = podtemplate.DefaultTimeout
	}
	w := &webhooks[T]{api: api, row: row, options: o}
	served := Webhooks{}
	if row.MutatePath != "" {
		served[row.MutatePath] = w.mutate
	}
	if row.ValidatePath != "" {
		served[row.ValidatePath] = w.validate
	}
	return served, nil
}

// webhooks answer admission requests for one kind.
type webhooks[T client.Object] struct {
	api     API
	row     Row[T]
	options Options
}

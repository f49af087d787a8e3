package cloneset

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-cloneset"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-cloneset"
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
	// Delete judges deletions at ValidatePath, as webhooks/deletion does. Nil allows them.
	Delete func(context.Context, admission.Request) admission.Response
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// Webhooks answer admission requests for CloneSets.
type Webhooks struct {
	api     API
	options Options
	passed  *tickets
}

// New makes the webhooks.
func New(api API, o Options) (*Webhooks, error) {
	if api == nil {
		return nil, errors.New("the webhooks of CloneSet need a client")
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("a timeout of %s is over before it starts", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = podtemplate.DefaultTimeout
	}
	return &Webhooks{api: api, options: o, passed: &tickets{}}, nil
}

// SetupWithManager serves the webhooks on the manager's webhook server.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	server := mgr.GetWebhookServer()
	if server == nil {
		return errors.New("the manager has no webhook server")
	}
	server.Register(MutatePath, &admission.Webhook{Handler: admission.HandlerFunc(w.Mutate)})
	server.Register(ValidatePath, &admission.Webhook{Handler: admission.HandlerFunc(w.Validate)})
	return nil
}

package containerrecreaterequest

import (
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
)

// MutatePath is where API servers expect requests to be completed.
const MutatePath = "/mutate-apps-kruise-io-containerrecreaterequest"

// defaultTimeout leaves the API server, which waits for ten seconds, time to hear why there is no answer.
const defaultTimeout = 8 * time.Second

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// NoDaemon rejects every request, because no daemon would stop containers.
	NoDaemon bool
	// Timeout of all reads of one admission. Default 8 seconds.
	Timeout time.Duration
}

// Webhook answers admission requests for ContainerRecreateRequests.
type Webhook struct {
	reader  client.Reader
	options Options
}

// New makes the webhook.
func New(reader client.Reader, o Options) (*Webhook, error) {
	if reader == nil {
		return nil, errors.New("the webhook of ContainerRecreateRequest needs a reader")
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("a timeout of %s is over before it starts", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &Webhook{reader: reader, options: o}, nil
}

// SetupWithManager serves the webhook on the manager's webhook server.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	return review.Serve(mgr, map[string]admission.HandlerFunc{MutatePath: w.Mutate})
}

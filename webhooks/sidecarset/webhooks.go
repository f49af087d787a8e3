package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-sidecarset"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-sidecarset"
	// DefaultNamespace is that of the manager.
	DefaultNamespace = pub.DefaultNamespace
)

// API is what the webhooks ask of the API server; client.Client has it.
type API interface {
	client.Reader
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// Namespace of the manager: of revisions, of the ConfigMap kruise-configuration, and where containers are judged by a
	// dry run. Default DefaultNamespace.
	Namespace string
	// AnyPodMetadata lets sets write annotations that no rule of kruise-configuration speaks of.
	AnyPodMetadata bool
	// Cover has the pods that a set selects sent to their webhook before the set is there, so that none is missed that is
	// created right after it. It is asked about sets that are let in and select more than they did, not in a dry run. An error
	// is a warning to whoever writes the set. Nil asks nobody.
	Cover func(ctx context.Context, set *appsv1beta1.SidecarSet) error
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// Webhooks answer admission requests for SidecarSets.
type Webhooks struct {
	api     API
	sets    client.Reader
	options Options
}

// New makes the webhooks. What api reads is read past a cache: revisions, the base of a canary, and kruise-configuration by its
// name, each only where the set has to do with them. All sets are listed from sets, untyped: the cache of a manager is right
// for it, as its controllers and the webhook for pods keep all sets in it anyway. One that seems to be in conflict is read
// again past the cache, so that nothing is refused for a set that has just gone. Two sets that come within the moment that
// a cache lags behind do not see each other; if they clash, pods that both select are refused, with the names of both.
func New(api API, sets client.Reader, o Options) (*Webhooks, error) {
	if api == nil || sets == nil {
		return nil, errors.New("the webhooks of SidecarSet need a client and a reader of sets")
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("a timeout of %s is over before it starts", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = podtemplate.DefaultTimeout
	}
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	return &Webhooks{api: api, sets: sets, options: o}, nil
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

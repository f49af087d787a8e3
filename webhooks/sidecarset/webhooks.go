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
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-sidecarset"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-sidecarset"
	// DefaultNamespace is that of the manager.
	DefaultNamespace = kruise.DefaultNamespace
)

// API is the part of client.Client that the webhooks call.
type API interface {
	client.Reader
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// Namespace of the manager: of revisions, of the ConfigMap kruise-configuration, and of dry runs that validate
	// containers. Default DefaultNamespace.
	Namespace string
	// AnyPodMetadata allows sets to write annotations without a rule in kruise-configuration.
	AnyPodMetadata bool
	// Cover requests that API servers send the pods of a set to their webhook before the set is stored, so that pods that
	// are created right after the set get its containers. It is called for admitted sets that select more than before, not
	// in a dry run. An error is a warning for the writer of the set. Nil is not called.
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

// New makes the webhooks. What api reads is read past a cache: revisions, the base of a canary, and
// kruise-configuration by its name, each only where the set has to do with them. All sets are listed from sets,
// untyped: the cache of a manager is right for it, as its controllers and the webhook for pods keep all sets in it
// anyway. One that seems to be in conflict is read again past the cache, so that nothing is refused for a set that has
// just gone. Two sets that come within the moment that a cache lags behind do not see each other; if they clash, pods
// that both select are refused, with the names of both.
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
	return review.Serve(mgr, map[string]admission.HandlerFunc{MutatePath: w.Mutate, ValidatePath: w.Validate})
}

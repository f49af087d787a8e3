package broadcastjob

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/templated"
	"github.com/kruisekit/kruisekit/internal/validation"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-broadcastjob"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-broadcastjob"
)

// API is what the webhooks ask of the API server; client.Client has it.
type API = templated.API

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// TemplateNoDefaults leaves pod templates as they were written, except for a missing restart policy.
	TemplateNoDefaults bool
	// HostNetworkHostPorts also sets the host ports in templates of pods in the host's network. It has no effect with
	// TemplateNoDefaults.
	HostNetworkHostPorts bool
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// Webhooks answer admission requests for BroadcastJobs.
type Webhooks struct {
	*templated.Webhooks[*appsv1beta1.BroadcastJob]
}

// New makes the webhooks.
func New(api API, o Options) (*Webhooks, error) {
	w, err := templated.New(api, kind(), templated.Options{
		TemplateNoDefaults: o.TemplateNoDefaults, HostNetworkHostPorts: o.HostNetworkHostPorts, Timeout: o.Timeout,
	})
	if err != nil {
		return nil, err
	}
	return &Webhooks{w}, nil
}

// SetupWithManager serves the webhooks on the manager's webhook server.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	return w.Register(mgr, MutatePath, ValidatePath)
}

// kind is BroadcastJob, as its webhooks look at it.
func kind() templated.Kind[*appsv1beta1.BroadcastJob] {
	return templated.Kind[*appsv1beta1.BroadcastJob]{
		Name:     "BroadcastJob",
		Hub:      func() *appsv1beta1.BroadcastJob { return &appsv1beta1.BroadcastJob{} },
		Old:      func() templated.Spoke[*appsv1beta1.BroadcastJob] { return &appsv1alpha1.BroadcastJob{} },
		Validate: validation.BroadcastJob,
		At:       func(map[string]any) (template, claims []string) { return []string{"spec", "template"}, nil },
	}
}

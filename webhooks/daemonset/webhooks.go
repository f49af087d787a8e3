package daemonset

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
	MutatePath = "/mutate-apps-kruise-io-daemonset"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-daemonset"
)

// API is what the webhooks ask of the API server; client.Client has it.
type API = templated.API

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// Webhooks answer admission requests for DaemonSets.
type Webhooks struct {
	*templated.Webhooks[*appsv1beta1.DaemonSet]
}

// New makes the webhooks.
func New(api API, o Options) (*Webhooks, error) {
	w, err := templated.New(api, kind(), templated.Options{TemplateNoDefaults: true, Timeout: o.Timeout})
	if err != nil {
		return nil, err
	}
	return &Webhooks{w}, nil
}

// SetupWithManager serves the webhooks on the manager's webhook server.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	return w.Register(mgr, MutatePath, ValidatePath)
}

// kind is DaemonSet, as its webhooks look at it.
func kind() templated.Kind[*appsv1beta1.DaemonSet] {
	return templated.Kind[*appsv1beta1.DaemonSet]{
		Name:     "DaemonSet",
		Hub:      func() *appsv1beta1.DaemonSet { return &appsv1beta1.DaemonSet{} },
		Old:      func() templated.Spoke[*appsv1beta1.DaemonSet] { return &appsv1alpha1.DaemonSet{} },
		Validate: validation.DaemonSet, ValidateUpdate: validation.DaemonSetUpdate,
		At: func(map[string]any) (template, claims []string) { return []string{"spec", "template"}, nil },
	}
}

package resourcedistribution

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/review"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-resourcedistribution"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// On admits distributions. Without it every one is rejected, because no controller distributes.
	On bool
	// Namespace is the manager's own. Distributions that name it as a target are rejected: the configuration of the manager is there. With an
	// empty one, none are.
	Namespace string
}

// Webhook answers admission requests for distributions.
type Webhook struct{ options Options }

// New returns a webhook.
func New(o Options) *Webhook { return &Webhook{options: o} }

// SetupWithManager serves the webhook on the manager's webhook server.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	return review.Serve(mgr, map[string]admission.HandlerFunc{Path: w.Validate})
}

// Validate rejects an invalid distribution, with every fault.
func (w *Webhook) Validate(_ context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) || review.IsDeleting(req) {
		return admission.Allowed("")
	}
	version, err := review.VersionOf(req, "resourcedistributions")
	if err != nil {
		return review.BadRequest(err)
	}
	if !w.options.On {
		return review.Forbidden("feature gate ResourceDistributionGate is off: nothing would be distributed")
	}
	now, err := read(version, req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	kind, faults := v1beta1.GroupVersion.WithKind(distribution.Kind).GroupKind(), distribution.Validate(now, w.options.Namespace)
	if req.Operation == admissionv1.Create {
		return review.Judged(kind, req.Name, faults, nil)
	}
	before, err := read(version, req.OldObject.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	added, borne := review.Added(faults, distribution.Validate(before, w.options.Namespace))
	return review.Judged(kind, req.Name, append(added, distribution.ValidateUpdate(now, before)...), borne)
}

// read decodes an object as v1beta1.
func read(version review.Version, raw []byte) (*v1beta1.ResourceDistribution, error) {
	return review.ReadHub(version, raw, &v1beta1.ResourceDistribution{}, &v1alpha1.ResourceDistribution{})
}

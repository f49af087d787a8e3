package resourcedistribution

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/distribution"
	"github.com/kruisekit/kruisekit/internal/review"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-resourcedistribution"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// On admits distributions. Without it every one is rejected, because no controller distributes.
	On bool
}

// Webhook answers admission requests for distributions.
type Webhook struct{ options Options }

// New returns a webhook.
func New(o Options) *Webhook { return &Webhook{options: o} }

// SetupWithManager serves the webhook on the manager's webhook server.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	server := mgr.GetWebhookServer()
	if server == nil {
		return errors.New("the manager has no webhook server")
	}
	server.Register(Path, &admission.Webhook{Handler: admission.HandlerFunc(w.Validate)})
	return nil
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
	now, err := decode(version, req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	faults := distribution.Validate(now)
	if req.Operation == admissionv1.Create {
		return answer(req.Name, faults, nil)
	}
	before, err := decode(version, req.OldObject.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	added, borne := review.Added(faults, distribution.Validate(before))
	return answer(req.Name, append(added, distribution.ValidateUpdate(now, before)...), borne)
}

// decode reads a distribution as v1beta1.
func decode(version review.Version, raw []byte) (*v1beta1.ResourceDistribution, error) {
	hub := &v1beta1.ResourceDistribution{}
	if version == review.Hub {
		return hub, review.Unmarshal(raw, hub)
	}
	old := &v1alpha1.ResourceDistribution{}
	if err := review.Unmarshal(raw, old); err != nil {
		return nil, err
	}
	if err := old.ConvertTo(hub); err != nil {
		return nil, fmt.Errorf("convert to v1beta1: %w", err)
	}
	return hub, nil
}

// answer rejects a distribution with new faults, and warns of those that the stored one has.
func answer(name string, faults, borne field.ErrorList) admission.Response {
	a := admission.Allowed("")
	if len(faults) > 0 {
		a = review.Invalid(v1beta1.GroupVersion.WithKind(distribution.Kind).GroupKind(), name, faults)
	}
	for _, fault := range borne {
		a.Warnings = append(a.Warnings, fault.Error())
	}
	return a
}

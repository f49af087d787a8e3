package podprobemarker

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/review"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-podprobemarker"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// Off rejects every marker, because nothing would probe. It is for the feature gates PodProbeMarkerGate and KruiseDaemon.
	Off bool
}

// Webhook answers admission requests for markers.
type Webhook struct{ options Options }

// New returns a webhook.
func New(o Options) *Webhook { return &Webhook{options: o} }

// SetupWithManager serves the webhook on the manager's webhook server.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	return review.Serve(mgr, map[string]admission.HandlerFunc{Path: w.Validate})
}

// Validate rejects an invalid marker, with every fault.
func (w *Webhook) Validate(_ context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) {
		return admission.Allowed("")
	}
	if version, err := review.VersionOf(req, "podprobemarkers"); err != nil || version != review.Old {
		return review.BadRequest(errors.Join(errors.New("a PodProbeMarker of v1alpha1 is wanted"), err))
	}
	if review.IsDeleting(req) {
		return admission.Allowed("")
	}
	if w.options.Off {
		return review.Forbidden("feature gates PodProbeMarkerGate and KruiseDaemon must be on")
	}
	marker := &v1alpha1.PodProbeMarker{}
	if err := review.Unmarshal(req.Object.Raw, marker); err != nil {
		return review.BadRequest(err)
	}
	var borne field.ErrorList
	faults := podprobe.Validate(marker)
	if req.Operation == admissionv1.Update {
		stored := &v1alpha1.PodProbeMarker{}
		if err := review.Unmarshal(req.OldObject.Raw, stored); err != nil {
			return review.BadRequest(err)
		}
		faults, borne = review.Added(faults, podprobe.Validate(stored))
		faults = append(faults, podprobe.ValidateUpdate(marker, stored)...)
	}
	answer := review.JudgedBadRequest(faults, nil)
	answer.Warnings = podprobe.Warnings(marker)
	return review.Warned(answer, borne)
}

package podprobemarker

import (
	"context"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/podprobe"
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
	server := mgr.GetWebhookServer()
	if server == nil {
		return errors.New("the manager has no webhook server")
	}
	server.Register(Path, &admission.Webhook{Handler: admission.HandlerFunc(w.Validate)})
	return nil
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
	faults, warnings := podprobe.Validate(marker), podprobe.Warnings(marker)
	if req.Operation == admissionv1.Update {
		stored := &v1alpha1.PodProbeMarker{}
		if err := review.Unmarshal(req.OldObject.Raw, stored); err != nil {
			return review.BadRequest(err)
		}
		added, borne := review.Added(faults, podprobe.Validate(stored))
		faults = append(added, podprobe.ValidateUpdate(marker, stored)...)
		for _, fault := range borne {
			warnings = append(warnings, fault.Error())
		}
	}
	answer := admission.Allowed("")
	if len(faults) > 0 {
		answer = review.Rejected(http.StatusBadRequest, faults)
	}
	answer.Warnings = warnings
	return answer
}

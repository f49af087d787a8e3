package workloadspread

import (
	"context"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-workloadspread"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// Off rejects every WorkloadSpread, because nothing would heed it. It is for the feature gate WorkloadSpread.
	Off bool
}

// Spreads has the WorkloadSpreads of a cluster. A Desk has them.
type Spreads interface {
	// In returns the WorkloadSpreads of a namespace, which must not be changed.
	In(namespace string) []*appsv1beta1.WorkloadSpread
	// Allowed returns the kinds that the installation allows as targets besides the usual ones.
	Allowed(ctx context.Context) []schema.GroupKind
}

// Webhook answers admission requests for WorkloadSpreads.
type Webhook struct {
	spreads Spreads
	api     API
	options Options
}

// New returns a webhook. The client reads targets live.
func New(s Spreads, api API, o Options) (*Webhook, error) {
	if (s == nil || api == nil) && !o.Off {
		return nil, errors.New("workloadspread webhook: a Desk and a client are required")
	}
	return &Webhook{spreads: s, api: api, options: o}, nil
}

// SetupWithManager serves the webhook on the manager's webhook server.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	return review.Serve(mgr, map[string]admission.HandlerFunc{Path: w.Validate})
}

// Validate rejects an invalid WorkloadSpread, with every fault.
func (w *Webhook) Validate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) {
		return admission.Allowed("")
	}
	version, err := review.VersionOf(req, "workloadspreads")
	if err != nil {
		return review.BadRequest(err)
	}
	if review.IsDeleting(req) {
		return admission.Allowed("")
	}
	if w.options.Off {
		return review.Forbidden("feature gate WorkloadSpread must be on")
	}
	now, err := decode(req, version, req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	var before *appsv1beta1.WorkloadSpread
	if req.Operation == admissionv1.Update {
		if before, err = decode(req, version, req.OldObject.Raw); err != nil {
			return review.BadRequest(err)
		}
	}
	return w.judge(ctx, now, before)
}

// judge reviews a WorkloadSpread; before is nil for a new one.
func (w *Webhook) judge(ctx context.Context, now, before *appsv1beta1.WorkloadSpread) admission.Response {
	allowed := w.allowed(ctx, now)
	faults := w.faults(now, allowed)
	var borne field.ErrorList
	if before != nil {
		faults, borne = review.Added(faults, w.faults(before, allowed))
		faults = append(faults, validation.WorkloadSpreadUpdate(now, before)...)
	}
	answer := admission.Allowed("")
	if len(faults) == 0 { // else the patches may be of no subset
		var warning string
		if faults, warning = w.checkPatches(ctx, now, before); warning != "" {
			answer.Warnings = append(answer.Warnings, warning)
		}
	}
	if len(faults) > 0 {
		return review.Rejected(http.StatusBadRequest, faults)
	}
	return review.Warned(answer, borne)
}

func (w *Webhook) faults(ws *appsv1beta1.WorkloadSpread, allowed []schema.GroupKind) field.ErrorList {
	faults := validation.WorkloadSpread(ws, allowed...)
	if conflict := validation.WorkloadSpreadConflict(ws, w.spreads.In(ws.Namespace)); conflict != nil {
		faults = append(faults, conflict)
	}
	return faults
}

// allowed returns further kinds of targets. They are read only for a target of another kind than the usual ones.
func (w *Webhook) allowed(ctx context.Context, ws *appsv1beta1.WorkloadSpread) []schema.GroupKind {
	kind, is := kindOf(ws)
	if !is || builtIn(kind) {
		return nil
	}
	return w.spreads.Allowed(ctx)
}

// decode decodes an object as v1beta1.
func decode(req admission.Request, version review.Version, raw []byte) (*appsv1beta1.WorkloadSpread, error) {
	ws, err := review.ReadHub(version, raw, &appsv1beta1.WorkloadSpread{}, &appsv1alpha1.WorkloadSpread{})
	if err == nil && ws.Namespace == "" {
		ws.Namespace = req.Namespace
	}
	return ws, err
}

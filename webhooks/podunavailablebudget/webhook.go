package podunavailablebudget

import (
	"context"
	"errors"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/kruisekit/kruisekit/api/policy/v1alpha1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/pub"
)

// Path receives the requests, as in the reference.
const Path = "/validate-policy-kruise-io-podunavailablebudget"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// Off rejects every budget, because nothing would heed it.
	Off bool
}

// Budgets returns the budgets of a namespace, which must not be changed.
type Budgets interface {
	Objects(ctx context.Context, namespace string) ([]*policyv1beta1.PodUnavailableBudget, error)
}

// Webhook answers admission requests for budgets.
type Webhook struct {
	budgets Budgets
	options Options
}

// New returns a webhook. It reads the other budgets of a namespace from a cache.
func New(b Budgets, o Options) (*Webhook, error) {
	if b == nil && !o.Off {
		return nil, errors.New("podunavailablebudget webhook: a reader of budgets is required")
	}
	return &Webhook{budgets: b, options: o}, nil
}

// SetupWithManager serves the webhook on the manager's webhook server.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	return review.Serve(mgr, map[string]admission.HandlerFunc{Path: w.Validate})
}

// Validate rejects an invalid budget, with every fault.
func (w *Webhook) Validate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) {
		return admission.Allowed("")
	}
	version, err := review.VersionIn(req, policyv1beta1.GroupVersion.Group, "podunavailablebudgets")
	if err != nil {
		return review.BadRequest(err)
	}
	if review.IsDeleting(req) {
		return admission.Allowed("")
	}
	if w.options.Off {
		return review.BadRequest(errors.New("no budget is heeded: feature gates PodUnavailableBudgetDeleteGate and PodUnavailableBudgetUpdateGate are off"))
	}
	others, err := w.budgets.Objects(ctx, req.Namespace)
	if err != nil {
		return review.Undecided(err)
	}
	now, faults, err := check(req, version, req.Object.Raw, others)
	if err != nil {
		return review.BadRequest(err)
	}
	if req.Operation == admissionv1.Create {
		return review.JudgedBadRequest(faults, nil)
	}
	stored, had, err := check(req, version, req.OldObject.Raw, others)
	if err != nil {
		return review.BadRequest(err)
	}
	added, borne := review.Added(faults, had)
	return review.JudgedBadRequest(append(added, pub.ValidateUpdate(now, stored)...), borne)
}

// check decodes a budget as v1beta1, and returns what is invalid in it.
func check(req admission.Request, version review.Version, raw []byte, others []*policyv1beta1.PodUnavailableBudget) (*policyv1beta1.PodUnavailableBudget, field.ErrorList, error) {
	old := &policyv1alpha1.PodUnavailableBudget{}
	hub, err := review.ReadHub(version, raw, &policyv1beta1.PodUnavailableBudget{}, old)
	if err != nil {
		return nil, nil, err
	}
	if hub.Namespace == "" {
		hub.Namespace = req.Namespace
	}
	faults := pub.Validate(hub, others)
	for _, fault := range pub.ValidateOlder(old.Annotations) {
		if !slices.ContainsFunc(faults, func(f *field.Error) bool { return f.Field == fault.Field }) {
			faults = append(faults, fault)
		}
	}
	return hub, faults, nil
}

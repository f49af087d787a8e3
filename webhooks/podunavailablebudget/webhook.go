package podunavailablebudget

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/kruisekit/kruisekit/api/policy/v1alpha1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
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

// change is what is done to a budget, under review, and rules return what is invalid in a budget.
type (
	change = kinds.Change[*policyv1beta1.PodUnavailableBudget]
	rules  = func(*policyv1beta1.PodUnavailableBudget) field.ErrorList
)

// New returns the webhook of PodUnavailableBudgets. It reads the other budgets of a namespace from a cache.
func New(b Budgets, o Options) (kinds.Webhooks, error) {
	row := kinds.Row[*policyv1beta1.PodUnavailableBudget]{
		Kind: policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget"),
		Hub:  &policyv1beta1.PodUnavailableBudget{}, Old: &policyv1alpha1.PodUnavailableBudget{},
		ValidatePath: Path, AdmitDeleting: true, Code: http.StatusBadRequest,
		Older: older, ValidateUpdate: pub.ValidateUpdate,
	}
	switch {
	case o.Off:
		row.ClosedCode = http.StatusBadRequest
		row.Closed = "no budget is heeded: " +
			"feature gates PodUnavailableBudgetDeleteGate and PodUnavailableBudgetUpdateGate are off"
	case b == nil:
		return nil, errors.New("podunavailablebudget webhook: a reader of budgets is required")
	}
	row.Rules = func(ctx context.Context, _ kinds.API, c change) (rules, error) {
		others, err := b.Objects(ctx, c.Namespace)
		return func(b *policyv1beta1.PodUnavailableBudget) field.ErrorList { return pub.Validate(b, others) }, err
	}
	return kinds.New(nil, row, kinds.Options{})
}

// older adds the faults of annotations, unless a field has a fault already.
func older(budget client.Object, faults field.ErrorList) field.ErrorList {
	for _, fault := range pub.ValidateOlder(budget.GetAnnotations()) {
		if !slices.ContainsFunc(faults, func(f *field.Error) bool { return f.Field == fault.Field }) {
			faults = append(faults, fault)
		}
	}
	return faults
}

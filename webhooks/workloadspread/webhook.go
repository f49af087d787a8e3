package workloadspread

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	spreads "github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-workloadspread"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// Off rejects every WorkloadSpread, because nothing would heed it. It is for the feature gate WorkloadSpread.
	Off bool
}

// Spreads has the WorkloadSpreads of a cluster. An Allocator has them.
type Spreads interface {
	// In returns the WorkloadSpreads of a namespace, which must not be changed.
	In(namespace string) []*appsv1beta1.WorkloadSpread
	// Allowed returns the kinds that the installation allows as targets besides the usual ones.
	Allowed(ctx context.Context) []schema.GroupKind
}

// change is what is done to a WorkloadSpread, under review, and rules return what is invalid in an object.
type (
	change = kinds.Change[*appsv1beta1.WorkloadSpread]
	rules  = func(*appsv1beta1.WorkloadSpread) field.ErrorList
)

// New returns the webhook of WorkloadSpreads. The client reads targets live.
func New(s Spreads, api API, o Options) (kinds.Webhooks, error) {
	row := kinds.Row[*appsv1beta1.WorkloadSpread]{
		Kind: appsv1beta1.GroupVersion.WithKind("WorkloadSpread"),
		Hub:  &appsv1beta1.WorkloadSpread{}, Old: &appsv1alpha1.WorkloadSpread{},
		ValidatePath: Path, AdmitDeleting: true, Code: http.StatusBadRequest,
		ValidateUpdate: subset.ValidateUpdate,
	}
	switch {
	case o.Off:
		row.Closed = "feature gate WorkloadSpread must be on"
	case s == nil || api == nil:
		return nil, errors.New("workloadspread webhook: an Allocator and a client are required")
	}
	row.Rules = func(ctx context.Context, _ kinds.API, c change) (rules, error) { return rulesOf(ctx, s, c.Now), nil }
	row.Lookup = func(ctx context.Context, _ kinds.API, c change) (found kinds.Finding, err error) {
		if len(c.Faults) > 0 { // the patches may be of no subset
			return found, nil
		}
		return checkPatches(ctx, api, c), nil
	}
	return kinds.New(api, row, kinds.Options{Timeout: patchTimeout})
}

// rulesOf returns the rules for an object. Further kinds of targets are read only for a target of another kind than the
// usual ones.
func rulesOf(ctx context.Context, s Spreads, now *appsv1beta1.WorkloadSpread) rules {
	var allowed []schema.GroupKind
	if kind := spreads.KindOf(now); !kind.Empty() && !spreads.BuiltIn(kind) {
		allowed = s.Allowed(ctx)
	}
	return func(ws *appsv1beta1.WorkloadSpread) field.ErrorList {
		faults := subset.Validate(ws, allowed...)
		if conflict := subset.Conflict(ws, s.In(ws.Namespace)); conflict != nil {
			faults = append(faults, conflict)
		}
		return faults
	}
}

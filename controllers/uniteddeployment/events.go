package uniteddeployment

import (
	"context"

	"github.com/kruisekit/kruisekit/internal/failure"
)

// Reasons of events.
const (
	reasonChanged        = "SuccessfulUpdateSubset"
	reasonFailedUpdate   = "FailedUpdateSubset"
	reasonFailedRevision = "FailedRevisionProvision"
	reasonFailedReplicas = "Failed SpecifySubsetReplicas"
)

// emit emits how many workloads were created and deleted, and passes the notes on. It emits a failure once until a pass
// has none.
func (r *Reconciler) emit(ctx context.Context, p *plan) {
	if p.created > 0 {
		r.api.Normalf(p.Object, reasonChanged, "Create %d Subset (%s)", p.created, p.Template.Kind.Kind)
	}
	if p.deleted > 0 {
		r.api.Normalf(p.Object, reasonChanged, "Delete %d Subset (%s)", p.deleted, p.Template.Kind.Kind)
	}
	failures := []struct {
		reason string
		err    error
	}{
		{reasonFailedUpdate, p.outcome.Provision},
		{reasonFailedUpdate, p.outcome.Update},
		{reasonFailedRevision, p.outcome.Revise},
		{reasonFailedReplicas, p.outcome.Fault},
	}
	failed := false
	for _, f := range failures {
		if f.err == nil {
			continue
		}
		failed = true
		if text := failure.BriefText(f.err.Error()); r.emitted.First(p.key(), f.reason+text) {
			r.api.Warningf(p.Object, f.reason, "%s", text)
		}
	}
	if !failed {
		r.emitted.Forget(p.key())
	}
	if p.executed && r.options.Explain != nil {
		r.options.Explain(ctx, p.key(), p.decision.Notes)
	}
}

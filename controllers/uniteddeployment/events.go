package uniteddeployment

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/failure"
)

// Reasons of events.
const (
	reasonChanged        = "SuccessfulUpdateSubset"
	reasonFailedUpdate   = "FailedUpdateSubset"
	reasonFailedRevision = "FailedRevisionProvision"
	reasonFailedReplicas = "Failed SpecifySubsetReplicas"
)

// emission is a sort of event about an object. The same text is emitted once.
type emission struct {
	object types.NamespacedName
	about  string
}

func emissions() []string { return []string{"provision", "update", "revision", "spec"} }

// emit emits how many workloads were created and deleted, and what failed, and passes the notes on.
func (r *Reconciler) emit(ctx context.Context, p *plan) {
	if p.created > 0 {
		r.api.Normalf(p.object, reasonChanged, "Create %d Subset (%s)", p.created, p.Template.Kind.Kind)
	}
	if p.deleted > 0 {
		r.api.Normalf(p.object, reasonChanged, "Delete %d Subset (%s)", p.deleted, p.Template.Kind.Kind)
	}
	r.emitFailed(p, "provision", reasonFailedUpdate, p.outcome.Provision)
	r.emitFailed(p, "update", reasonFailedUpdate, p.outcome.Update)
	r.emitFailed(p, "revision", reasonFailedRevision, p.outcome.Revise)
	r.emitFailed(p, "spec", reasonFailedReplicas, p.outcome.Fault)
	if p.executed && r.options.Explain != nil {
		r.options.Explain(ctx, p.key(), p.decision.Notes)
	}
}

// emitFailed emits a failure, once for as long as it is the same.
func (r *Reconciler) emitFailed(p *plan, about, reason string, err error) {
	text := ""
	if err != nil {
		text = failure.Brief(err).Error()
	}
	if r.emitted.Changed(emission{p.key(), about}, text) {
		r.api.Warningf(p.object, reason, "%s", text)
	}
}

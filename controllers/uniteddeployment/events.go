package uniteddeployment

import (
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
	reason string
}

func emissions() []string {
	return []string{reasonFailedUpdate + "/create", reasonFailedUpdate, reasonFailedRevision, reasonFailedReplicas}
}

// emitProvisioned emits how many workloads were created and deleted.
func (r *Reconciler) emitProvisioned(s *snapshot, created, deleted int) {
	if created > 0 {
		r.api.Normalf(s.object, reasonChanged, "Create %d Subset (%s)", created, s.template.Kind.Kind)
	}
	if deleted > 0 {
		r.api.Normalf(s.object, reasonChanged, "Delete %d Subset (%s)", deleted, s.template.Kind.Kind)
	}
}

// emitFailures emits what failed, once for as long as it is the same.
func (r *Reconciler) emitFailures(s *snapshot, p *plan, fault error) {
	provision := p.provisionErr
	if p.reviseErr != nil {
		provision = nil
	}
	for i, err := range []error{provision, p.updateErr, p.reviseErr, fault} {
		about, text, reason := emissions()[i], "", emissions()[i]
		if err != nil {
			text = failure.Brief(err).Error()
		}
		if i == 0 {
			reason = reasonFailedUpdate
		}
		if r.emitted.Changed(emission{s.key(), about}, text) {
			r.api.Warningf(s.object, reason, "%s", text)
		}
	}
}

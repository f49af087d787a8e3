package uniteddeployment

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
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

// report writes the status, if it changed, and emits what failed.
func (r *Reconciler) report(
	ctx context.Context, s *snapshot, status v1beta1.UnitedDeploymentStatus, o subsets.Outcome,
) error {
	fresh := s.object.DeepCopy()
	fresh.Status = status
	_, err := r.status.Write(ctx, s.object, fresh, map[string]any{
		"replicas": status.Replicas, "updatedReplicas": status.UpdatedReplicas, "currentRevision": status.CurrentRevision,
	})
	r.emit(s, "provision", reasonFailedUpdate, o.Provision)
	r.emit(s, "update", reasonFailedUpdate, o.Update)
	r.emit(s, "revision", reasonFailedRevision, o.Revise)
	r.emit(s, "spec", reasonFailedReplicas, o.Fault)
	return err
}

// emit emits a failure, once for as long as it is the same.
func (r *Reconciler) emit(s *snapshot, about, reason string, err error) {
	text := ""
	if err != nil {
		text = failure.Brief(err).Error()
	}
	if r.emitted.Changed(emission{s.key(), about}, text) {
		r.api.Warningf(s.object, reason, "%s", text)
	}
}

// emitProvisioned emits how many workloads were created and deleted.
func (r *Reconciler) emitProvisioned(s *snapshot, created, deleted int) {
	if created > 0 {
		r.api.Normalf(s.object, reasonChanged, "Create %d Subset (%s)", created, s.Template.Kind.Kind)
	}
	if deleted > 0 {
		r.api.Normalf(s.object, reasonChanged, "Delete %d Subset (%s)", deleted, s.Template.Kind.Kind)
	}
}

package uniteddeployment

import (
	"context"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// report writes the status, if it changed, also where another write failed.
func (r *Reconciler) report(ctx context.Context, p *plan) error {
	is := *p.Object
	is.Status = p.status()
	_, err := r.api.WriteStatus(ctx, r.objects, p.Object, &is, map[string]any{ // the schema requires them
		"replicas": is.Status.Replicas, "updatedReplicas": is.Status.UpdatedReplicas,
		"currentRevision": is.Status.CurrentRevision,
	})
	return err
}

// status follows from what became of the writes.
func (p *plan) status() v1beta1.UnitedDeploymentStatus {
	if p.invalid != nil {
		return p.Unusable(p.invalid)
	}
	return p.Status(p.decision, p.outcome)
}

package uniteddeployment

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// report returns the write of the status, if the status changed, also where a write failed.
func (p *plan) report() (*write.Write, error) {
	is := *p.Object
	is.Status = p.status()
	kind := stored.Kind{GVK: subsets.OwnerKind()}
	return stored.WriteStatus(kind, p.Object, &is, map[string]any{ // the schema requires them
		"replicas": is.Status.Replicas, "updatedReplicas": is.Status.UpdatedReplicas,
		"currentRevision": is.Status.CurrentRevision,
	})
}

// status follows from what became of the writes.
func (p *plan) status() v1beta1.UnitedDeploymentStatus {
	if p.invalid != nil {
		return p.Unusable(p.invalid)
	}
	return p.Status(p.decision, p.outcome)
}

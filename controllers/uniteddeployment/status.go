package uniteddeployment

import "github.com/kruisekit/kruisekit/api/apps/v1beta1"

// status follows from what became of the writes.
func (p *plan) status() v1beta1.UnitedDeploymentStatus {
	if p.invalid != nil {
		return p.Unusable(p.invalid)
	}
	return p.Status(p.decision, p.outcome)
}

package podunavailablebudget

import (
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// report returns the write of the status, if the plan changes it. The API server refuses a status that follows from an
// older budget.
func (s *snapshot) report(p *plan) (*write.Write, error) {
	if !p.changed {
		return nil, nil
	}
	is, status := *s.object, p.status
	is.Status = status
	return stored.WriteStatusVersion(stored.Kind{GVK: gvk()}, s.object, &is, map[string]any{ // the schema requires these
		"unavailableAllowed": status.UnavailableAllowed, "currentAvailable": status.CurrentAvailable,
		"desiredAvailable": status.DesiredAvailable, "totalReplicas": status.TotalReplicas,
	})
}

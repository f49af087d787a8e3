package imagelistpulljob

import "github.com/kruisekit/kruisekit/internal/statuspatch"

// report writes the status, if it changed, also where another write failed.
func (p *plan) report() (pass, error) {
	fresh, status := *p.list, &p.decision.Status
	fresh.Status = *status
	return statuspatch.Pass(p.lists, p.list, &fresh, map[string]any{ // the schema requires them
		"desired": status.Desired, "active": status.Active, "completed": status.Completed, "succeeded": status.Succeeded,
	}, nil)
}

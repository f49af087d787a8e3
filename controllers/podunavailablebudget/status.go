package podunavailablebudget

import (
	"time"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// attempts at a status that admission writes at the same time.
const attempts = 4

// planned is what there is to do about a budget. All of it follows from the snapshot, the counted pods, and the
// answers.
type planned struct {
	*snapshot

	// count plans with the pods as they are counted now; nil for a budget that was forgotten meanwhile.
	count  func(*snapshot) *pass
	status *statuspatch.Contended
	// decided is the last plan; nil where the budget was forgotten.
	decided *pass
}

// newPlan returns the plan of a budget.
func newPlan(s *snapshot, count func(*snapshot) *pass) *planned {
	p := &planned{snapshot: s, count: count}
	p.status = &statuspatch.Contended{Kind: kind(), Object: s.object, Attempts: attempts, Plan: p.report, Read: s.read}
	return p
}

// kind is that of budgets.
func kind() stored.Kind { return stored.Kind{GVK: gvk()} }

// stands reports whether the last plan holds.
func (p *planned) stands() bool { return p.decided != nil && p.status.Stands() }

// report returns the write of the status, if the status changed.
func (p *planned) report(time.Time) (*write.Write, error) {
	if p.decided = p.count(p.snapshot); p.decided == nil || !p.decided.changed {
		return nil, nil
	}
	is, status := *p.object, p.decided.status
	is.Status = status
	return statuspatch.WriteVersion(kind(), p.object, &is, map[string]any{ // the schema requires these
		"unavailableAllowed": status.UnavailableAllowed, "currentAvailable": status.CurrentAvailable,
		"desiredAvailable": status.DesiredAvailable, "totalReplicas": status.TotalReplicas,
	})
}

type (
	sequence = driver.Pass[*write.Write]
	step     = driver.Step[*write.Write]
)

// pass is all that is written: the status, and then the stamps. A pod whose write fails keeps no other pod from its
// stamp.
func (p *planned) pass() sequence {
	return driver.Sequence(
		step{Plan: func() (sequence, error) { return p.status, nil }, Required: true},
		step{Plan: func() (sequence, error) {
			if !p.stands() {
				return nil, nil
			}
			writes, err := p.decided.records(p.snapshot)
			return driver.Writes(writes...), err
		}},
	)
}

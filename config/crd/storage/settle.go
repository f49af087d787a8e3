package storage

import (
	"context"
	"strings"
	"time"
)

// step is how often Migrate reports while it waits or rewrites.
const step = 15 * time.Second

// Progress is how far Migrate is.
type Progress struct {
	// Result is that of the CRD so far. While Migrate waits, the CRD is the one whose versions changed last.
	Result

	// Total is how many objects the CRD has.
	Total int
	// Wait is how long Migrate waits still for API servers that may write older versions; zero when it rewrites.
	Wait time.Duration
}

// settle waits until all API servers write the storage version, and reports the rest of the wait in each step.
func (m *migrator) settle(ctx context.Context, p Plan) error {
	target := Target{CRD: p.of.Name, Version: p.Resource.Version}
	for left := p.unsettled; left > 0; left -= step {
		m.options.Report(Progress{Result: Result{Target: target, Stored: p.Stored}, Wait: left})
		if err := m.pause(ctx, min(left, step)); err != nil {
			return err
		}
	}
	return nil
}

// unsettled returns how long API servers may write an older version, at a time of the API server: for the given
// duration after the last change of the versions. An unknown time counts as now.
func unsettled(crd *definition, at time.Time, d time.Duration) time.Duration {
	var changed time.Time
	for _, f := range crd.ManagedFields {
		if f.FieldsV1 == nil || !strings.Contains(string(f.FieldsV1.Raw), `"f:versions"`) {
			continue
		}
		if f.Time == nil {
			return d
		}
		if f.Time.After(changed) {
			changed = f.Time.Time
		}
	}
	if changed.IsZero() || at.Before(changed) {
		return d
	}
	return max(0, d-at.Sub(changed))
}

func (m *migrator) pause(ctx context.Context, d time.Duration) error {
	timer := m.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

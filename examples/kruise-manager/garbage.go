package main

import (
	"context"
	"runtime/debug"
	"time"
)

const (
	// defaultPercent is how much the heap of a Go program may grow before garbage is collected, and startPercent how much
	// during a start.
	defaultPercent, startPercent = 100, 50
	// startPeriod is how long a start lasts after the caches have synced: all objects are reconciled once.
	startPeriod = time.Minute
)

// startup ends a start. Every replica starts, whether it leads or not.
type startup struct{ period time.Duration }

// collectOften collects garbage more often during a start, when all objects are decoded and few of their bytes are
// kept: the process takes not much more memory then than later. It changes nothing where the administrator has set
// GOGC. What it returns runs when the caches have synced.
func collectOften(getenv func(string) string, period time.Duration) *startup {
	if getenv("GOGC") != "" {
		return &startup{}
	}
	debug.SetGCPercent(startPercent)
	return &startup{period}
}

// NeedLeaderElection is false.
func (*startup) NeedLeaderElection() bool { return false }

// Start collects garbage as often as by default from the end of the start on.
func (s *startup) Start(ctx context.Context) error {
	if s.period == 0 {
		return nil
	}
	end, cancel := context.WithTimeout(ctx, s.period)
	defer cancel()
	if <-end.Done(); ctx.Err() == nil {
		debug.SetGCPercent(defaultPercent)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// phase is what one step of a scenario took.
type phase struct {
	name string
	pods int
	wall time.Duration
	// limit and limitCPU are what the plain client takes.
	limit, limitCPU time.Duration
	used            usage // since the beginning, but for memory
}

// columns of a table of phases.
func columns() []string {
	return []string{
		"phase", "pods", "wall s", "limit s", "of limit", "CPU ms/pod", "limit ms/pod",
		"writes/pod", "reconciles/pod", "conflicts", "RSS MiB",
	}
}

func (p phase) row() []string {
	pods := float64(p.pods)
	limit, of := "", ""
	if p.limit > 0 {
		limit, of = fmt.Sprintf("%.1f", p.limit.Seconds()), fmt.Sprintf("%.2f", p.wall.Seconds()/p.limit.Seconds())
	}
	cells := []string{p.name, fmt.Sprint(p.pods), fmt.Sprintf("%.1f", p.wall.Seconds()), limit, of}
	if p.used.rss == 0 { // not ours
		return append(cells, "", "", "", "", "", "")
	}
	return append(cells, perPod(p.used.cpu, p.pods), perPod(p.limitCPU, p.pods),
		fmt.Sprintf("%.2f", p.used.writes/pods), fmt.Sprintf("%.2f", p.used.passes/pods),
		fmt.Sprintf("%.0f", p.used.conflicts), mib(p.used.rss))
}

// perPod is CPU time in milliseconds; empty for none.
func perPod(cpu time.Duration, pods int) string {
	if cpu == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(cpu.Microseconds())/1000/float64(pods))
}

func mib(bytes int64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }

// measure runs a step and returns what the manager took for it. of is nil where no manager has a part.
func measure(ctx context.Context, of *replica, p phase, step func() error) (phase, error) {
	var before usage
	var err error
	if of != nil {
		if before, err = of.used(ctx); err != nil {
			return p, err
		}
	}
	began := time.Now()
	if err = step(); err != nil {
		return p, fmt.Errorf("%s: %w", p.name, err)
	}
	p.wall = time.Since(began)
	if of != nil {
		if p.used, err = of.used(ctx); err != nil {
			return p, err
		}
		p.used.cpu -= before.cpu
		p.used.writes -= before.writes
		p.used.passes -= before.passes
		p.used.conflicts -= before.conflicts
	}
	return p, nil
}

// profile says how profiles are named and how long they take.
type profile struct {
	name   string
	length time.Duration
}

// profiled runs a step while profiles of the manager's CPU and of its allocations are taken.
func (e *env) profiled(ctx context.Context, r *replica, p profile, step func() error) error {
	length := max(p.length, time.Second) // none would be 30 seconds
	taken := make(chan error, 2)
	for _, of := range []string{"profile", "allocs"} {
		go func() {
			taken <- r.profile(ctx, fmt.Sprintf("%s?seconds=%.0f", of, length.Seconds()),
				filepath.Join(e.out, p.name+"-"+of+".pprof"))
		}()
	}
	err := step()
	return errors.Join(err, <-taken, <-taken)
}

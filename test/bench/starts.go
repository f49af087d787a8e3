package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// most is how many pods the largest cluster has.
const most = 20000

// replicasEach is how many pods a CloneSet of scenario C has.
const replicasEach = 1000

// starts is scenario C: what a start takes on clusters of several sizes, what the manager takes when nothing changes,
// and how another replica takes over.
func starts(ctx context.Context, e *env) error {
	sizes := []int{0, e.pick(1000, 4000), e.pick(2000, most)}
	e.report.table("Starts", "pods", "first reconcile s", "idle after s", "CPU s", "writes", "peak MiB",
		"steady MiB", "peak of steady", "KiB/pod", "idle CPU of a core", "idle writes")
	var empty int64
	var sets []subject
	for i, n := range sizes {
		if err := e.fill(ctx, &sets, n); err != nil {
			return err
		}
		s, r, err := e.started(ctx, n)
		if err != nil {
			return err
		}
		if n == 0 {
			empty = s.steady.rss
		}
		e.report.row(s.row(empty)...)
		if i == len(sizes)-1 {
			return e.takeover(ctx, r)
		}
		if err := r.stop(); err != nil {
			return err
		}
	}
	return nil
}

// start is what a start took.
type start struct {
	pods            int
	first, idle     time.Duration
	settled, steady usage
	// idleCPU is the share of a core, and idleWrites the requests, of a process to which nothing happens.
	idleCPU, idleWrites float64
}

func (s start) row(empty int64) []string {
	each := ""
	if s.pods > 0 {
		each = fmt.Sprintf("%.1f", float64(s.steady.rss-empty)/1024/float64(s.pods))
	}
	return []string{
		fmt.Sprint(s.pods), fmt.Sprintf("%.1f", s.first.Seconds()), fmt.Sprintf("%.1f", s.idle.Seconds()),
		fmt.Sprintf("%.2f", s.settled.cpu.Seconds()), fmt.Sprintf("%.0f", s.settled.writes), mib(s.settled.peak),
		mib(s.steady.rss), fmt.Sprintf("%.2f", float64(s.settled.peak)/float64(s.steady.rss)), each,
		fmt.Sprintf("%.2f %%", s.idleCPU*100), fmt.Sprintf("%.0f", s.idleWrites),
	}
}

// started starts a replica, waits until it has nothing to do, and watches it for a minute.
func (e *env) started(ctx context.Context, n int) (s start, r *replica, err error) {
	s.pods = n
	began := time.Now()
	if r, err = e.manage(ctx); err != nil {
		return s, r, err
	}
	if n > 0 {
		if err := r.until(ctx, func(ctx context.Context) error { return r.reconciled(ctx, "cloneset") }); err != nil {
			return s, r, err
		}
	}
	s.first = time.Since(began)
	const quiet = 2 * time.Second
	if err := r.idle(ctx, quiet); err != nil {
		return s, r, err
	}
	s.idle = time.Since(began) - quiet
	if s.settled, err = r.used(ctx); err != nil {
		return s, r, err
	}
	minute := time.Duration(e.pick(15, 60)) * time.Second
	// What a start leaves is collected, and goes back to the system, in the next minutes.
	if err := e.profiled(ctx, r, profile{fmt.Sprintf("c-idle-%d", n), minute}, func() error {
		return wait(ctx, minute)
	}); err != nil {
		return s, r, err
	}
	before, err := r.used(ctx)
	if err != nil {
		return s, r, err
	}
	if err := wait(ctx, minute); err != nil {
		return s, r, err
	}
	if s.steady, err = r.used(ctx); err != nil {
		return s, r, err
	}
	s.idleCPU = (s.steady.cpu - before.cpu).Seconds() / s.steady.at.Sub(before.at).Seconds()
	s.idleWrites = s.steady.writes - before.writes
	return s, r, r.profile(ctx, "heap", filepath.Join(e.out, fmt.Sprintf("c-heap-%d.pprof", n)))
}

// takeover starts a second replica, stops the first, and reports how long the second takes to lead and to be idle.
func (e *env) takeover(ctx context.Context, leader *replica) error {
	second, err := e.manage(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := leader.stop(); err != nil {
		return err
	}
	stopped := time.Since(began)
	if err := second.until(ctx, func(ctx context.Context) error {
		return second.reconciled(ctx, "cloneset")
	}); err != nil {
		return err
	}
	first := time.Since(began)
	if err := second.idle(ctx, 2*time.Second); err != nil {
		return err
	}
	e.report.table("A takeover by the other replica", "step", "s after the leader was asked to end")
	e.report.row("the leader has ended", fmt.Sprintf("%.1f", stopped.Seconds()))
	e.report.row("the other replica has reconciled a CloneSet", fmt.Sprintf("%.1f", first.Seconds()))
	e.report.row("the other replica has nothing to do", fmt.Sprintf("%.1f", time.Since(began).Seconds()-2))
	return second.stop()
}

// reconciled returns an error until a controller has reconciled.
func (r *replica) reconciled(ctx context.Context, controller string) error {
	body, err := r.get(ctx, 2, "/metrics")
	if err != nil {
		return err
	}
	for _, s := range samples(body, "controller_runtime_reconcile_total") {
		if s.labels["controller"] == controller+"-controller" && s.value > 0 {
			return nil
		}
	}
	return errors.New(controller + " has reconciled nothing")
}

// idle returns when the replica has reconciled nothing for a while, and nothing waits. It asks seldom: an answer with
// all metrics takes the replica some milliseconds.
func (r *replica) idle(ctx context.Context, quiet time.Duration) error {
	last, since := -1.0, time.Now()
	return r.until(ctx, func(ctx context.Context) error {
		if err := wait(ctx, quiet/4); err != nil {
			return err
		}
		body, err := r.get(ctx, 2, "/metrics")
		if err != nil {
			return err
		}
		passes, waiting := 0.0, 0.0
		for _, s := range samples(body, "controller_runtime_reconcile_total") {
			passes += s.value
		}
		for _, metric := range []string{"workqueue_depth", "controller_runtime_active_workers"} {
			for _, s := range samples(body, metric) {
				waiting += s.value
			}
		}
		if passes != last || waiting > 0 {
			last, since = passes, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("%.0f reconciles, %.0f objects wait", passes, waiting)
		}
		return nil
	})
}

// fill creates CloneSets until there are n pods in all, and waits until the manager has nothing left to do.
func (e *env) fill(ctx context.Context, sets *[]subject, n int) error {
	filling, err := e.settled(ctx)
	if err != nil {
		return err
	}
	for len(*sets) < n/replicasEach {
		set := cloneSet(fmt.Sprintf("web-%d", len(*sets)), replicasEach)
		if err := set.create(ctx, e.client); err != nil {
			return err
		}
		if err := set.await(ctx, e.client, replicasEach); err != nil {
			return err
		}
		*sets = append(*sets, set)
	}
	if err := filling.idle(ctx, 5*time.Second); err != nil {
		return err
	}
	return filling.stop()
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}

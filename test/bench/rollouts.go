package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// share is how many pods a rollout may make unavailable at a time.
const share = "20%"

// limits are what the plain client takes, in this order: to create pods, to update them in place, to recreate them.
type limits [3]struct{ wall, cpu time.Duration }

// scaled returns the limits of as many times the pods.
func (l limits) scaled(times float64) limits {
	for i := range l {
		l[i].wall = time.Duration(float64(l[i].wall) * times)
		l[i].cpu = time.Duration(float64(l[i].cpu) * times)
	}
	return l
}

// measureLimits has the plain client create, update and recreate pods, while no manager runs. It takes the first of
// these steps, as many as are asked for.
func (e *env) measureLimits(ctx context.Context, n, steps int) (l limits, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	p, err := newPlain(ctx, e.config)
	if err != nil {
		return l, err
	}
	names := numbered(n)
	for i, step := range []struct {
		window int
		do     func(name string) error
	}{
		{n, func(name string) error { return p.create(ctx, name) }},
		{n / 5, func(name string) error { return p.update(ctx, name, "registry.example.com/shop/web:2") }},
		{n / 5, func(name string) error { return p.recreate(ctx, name) }},
	}[:steps] {
		before, err := cpuOf(os.Getpid())
		if err != nil {
			return l, err
		}
		if l[i].wall, err = each(names, step.window, step.do); err != nil {
			return l, err
		}
		after, err := cpuOf(os.Getpid())
		if err != nil {
			return l, err
		}
		l[i].cpu = after - before
	}
	fmt.Printf("  limit of %d pods: %v\n", n, l)
	return l, p.clear(ctx)
}

// rollouts is scenario A: workloads of all kinds one after the other, in the same cluster.
func rollouts(ctx context.Context, e *env) error {
	n := e.pick(300, 1000)
	l, err := e.measureLimits(ctx, n, len(limits{}))
	if err != nil {
		return err
	}
	r, err := e.settled(ctx)
	if err != nil {
		return err
	}
	e.report.table("One workload, at most "+share+" of its pods unavailable", columns()...)
	for _, s := range subjects(n, e.pick(n/10, n), len(e.cluster.Nodes)) {
		limit := l
		if s.pods != n { // the limit is of other work
			limit = limits{}
		}
		if err := e.rollOut(ctx, r, s, limit); err != nil {
			return err
		}
	}
	if e.quick {
		return nil
	}
	return e.sizes(ctx, r)
}

// rollOut creates a workload, gives it another image, and has its pods recreated.
func (e *env) rollOut(ctx context.Context, r *replica, s subject, l limits) (err error) {
	for which, limit := range l {
		p := phase{
			name: s.kind + " " + []string{"create", "in place", "recreate"}[which], pods: s.pods,
			limit: limit.wall, limitCPU: limit.cpu,
		}
		by := r
		if s.kind == "Deployment" { // of Kubernetes
			by = nil
		}
		if which == 1 && by == nil || which == 2 && s.only {
			continue // a Deployment updates nothing in place
		}
		if by != nil {
			if err := by.idle(ctx, 2*time.Second); err != nil {
				return err
			}
		}
		step := func() (err error) {
			p, err = measure(ctx, by, p, func() error {
				if err := e.step(ctx, s, which); err != nil {
					return err
				}
				return s.await(ctx, e.client, s.pods)
			})
			return err
		}
		if by != nil && limit.wall > 0 {
			name := "a-" + strings.ToLower(s.kind) + "-" + []string{"create", "inplace", "recreate"}[which]
			err = e.profiled(ctx, r, profile{name, limit.wall}, step)
		} else {
			err = step()
		}
		if err != nil {
			return err
		}
		e.report.row(p.row()...)
	}
	return s.delete(ctx, e.client)
}

// sizes shows how the cost of a pod grows with its set.
func (e *env) sizes(ctx context.Context, r *replica) error {
	e.report.table("The cost of a pod as its CloneSet grows", columns()...)
	for _, n := range []int{100, 500, 2000} {
		s := cloneSet(fmt.Sprintf("sized-%d", n), n)
		s.only = true
		if err := e.rollOut(ctx, r, s, limits{}); err != nil {
			return err
		}
	}
	return nil
}

// step creates a workload, gives it another image, or another variable, for which pods are recreated.
func (e *env) step(ctx context.Context, s subject, which int) error {
	switch which {
	case 0:
		return s.create(ctx, e.client)
	case 1:
		return s.change(ctx, e.client, "image", "registry.example.com/shop/web:2")
	default:
		return s.change(ctx, e.client, "env", []any{map[string]any{"name": "LEVEL", "value": "debug"}})
	}
}

package main

import (
	"context"
	"fmt"
	"strings"
)

const (
	// perSet is how many pods each CloneSet of scenario B has.
	perSet = 20
	// limitPods bounds the pods of the plain client in scenario B. What it takes is scaled to those of all CloneSets.
	limitPods = 2000
)

// many is scenario B: many CloneSets, all created and all rolled out at once.
func many(ctx context.Context, e *env) error {
	n := e.pick(10, 500)
	pods := n * perSet
	l, err := e.measureLimits(ctx, min(pods, limitPods), 2)
	if err != nil {
		return err
	}
	l = l.scaled(float64(pods) / float64(min(pods, limitPods)))
	r, err := e.settled(ctx)
	if err != nil {
		return err
	}
	sets := make([]subject, n)
	for i := range sets {
		sets[i] = cloneSet(fmt.Sprintf("web-%d", i), perSet)
	}
	e.report.table(fmt.Sprintf("%d CloneSets of %d pods at once", n, perSet), columns()...)
	for step, name := range []string{"create", "in place"} {
		p := phase{name: name, pods: pods, limit: l[step].wall, limitCPU: l[step].cpu}
		if err := e.profiled(ctx, r, profile{"b-" + strings.ReplaceAll(name, " ", ""), l[step].wall}, func() (err error) {
			p, err = measure(ctx, r, p, func() error {
				for _, set := range sets {
					if err := e.step(ctx, set, step); err != nil {
						return err
					}
				}
				for _, set := range sets {
					if err := set.await(ctx, e.client, perSet); err != nil {
						return err
					}
				}
				return nil
			})
			return err
		}); err != nil {
			return err
		}
		e.report.row(p.row()...)
	}
	return nil
}

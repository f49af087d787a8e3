package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		sets[i] = cloneSet(fmt.Sprintf("web-%d", i), perSet, inPlace())
	}
	table := e.report.Table(fmt.Sprintf("%d CloneSets of %d pods at once", n, perSet), columns()...)
	if pods > limitPods {
		table.Notes = []string{fmt.Sprintf("The limit was measured with %d pods, and scaled.", limitPods)}
	}
	for step, name := range []string{"create", "in place"} {
		p := phase{name: name, pods: pods, limit: l[step].wall, limitCPU: l[step].cpu}
		if err := e.profiled(ctx, r, profile{"b-" + strings.ReplaceAll(name, " ", ""), l[step].wall}, func() (err error) {
			p, err = measure(ctx, r, p, func() error {
				for _, set := range sets {
					if err := e.step(ctx, set, step); err != nil {
						return err
					}
				}
				return e.awaitAll(ctx, sets)
			})
			return err
		}); err != nil {
			return err
		}
		table.Add(p.row()...)
	}
	return nil
}

// awaitAll returns when all pods of all CloneSets are done.
func (e *env) awaitAll(ctx context.Context, sets []subject) error {
	return poll(ctx, 30*time.Minute, func(ctx context.Context) error {
		done, err := e.doneInAll(ctx, sets[0])
		if err != nil {
			return err
		}
		if done < len(sets)*perSet {
			return fmt.Errorf("%d of %d pods", done, len(sets)*perSet)
		}
		return nil
	})
}

// doneInAll counts the pods of all objects of a kind that are done. It takes a second more than it needs, because it
// shares the server with what is measured.
func (e *env) doneInAll(ctx context.Context, s subject) (total int, err error) {
	if err := wait(ctx, time.Second); err != nil {
		return 0, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(s.gvk())
	if err := e.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("list %s: %w", s.kind, err)
	}
	for i := range list.Items {
		total += s.count(&list.Items[i])
	}
	return total, nil
}

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podsOfBudget is how many pods each budget of scenario F has. Half of them may be unavailable.
const podsOfBudget = 40

// evictions is scenario F: evictions of half of the pods of budgets, as many as these allow, and then of some more.
func evictions(ctx context.Context, e *env) error {
	n := e.pick(10, 50)
	r, err := e.settled(ctx)
	if err != nil {
		return err
	}
	if err := e.apply(ctx, budgets(n)); err != nil {
		return err
	}
	p, err := newPlain(ctx, e.config)
	if err != nil {
		return err
	}
	// Of each budget, a quarter of the pods is evicted beside those of all others, a quarter together, and some of the
	// rest.
	var spread, together, rest []string
	for i := range n * podsOfBudget {
		byPod := fmt.Sprintf("budget-%d-%d", i%n, i/n)
		byBudget := fmt.Sprintf("budget-%d-%d", i/podsOfBudget, i%podsOfBudget)
		if i/n < podsOfBudget/4 {
			spread = append(spread, byPod)
		} else if i/n >= podsOfBudget/2 {
			rest = append(rest, byPod)
		}
		if at := i % podsOfBudget; at >= podsOfBudget/4 && at < podsOfBudget/2 {
			together = append(together, byBudget)
		}
	}
	if err := p.createFor(ctx, slices.Concat(spread, together, rest), e.cluster.Nodes); err != nil {
		return err
	}
	if err := r.idle(ctx, 5*time.Second); err != nil {
		return err
	}
	e.report.table(fmt.Sprintf("Evictions, %d at a time, under %d budgets", clients, n),
		"asked", "evictions", "allowed", "refused", "other errors", "p50 ms", "p99 ms",
		"CPU ms each", "writes each", "reconciles each")
	for _, step := range []struct {
		name string
		pods []string
	}{
		{"of all budgets in turn", spread},
		{"of one budget after the other", together},
		{"beyond the budgets", rest[:len(rest)/4]},
	} {
		row, err := p.evictAll(ctx, r, step.name, step.pods)
		if err != nil {
			return err
		}
		e.report.row(row...)
	}
	return nil
}

// createFor creates pods of budgets, bound to nodes, and waits until they are ready.
func (p *plain) createFor(ctx context.Context, names, nodes []string) error {
	_, err := each(names, len(names), func(name string) error {
		var budget, i int
		if _, err := fmt.Sscanf(name, "budget-%d-%d", &budget, &i); err != nil {
			return fmt.Errorf("read name: %w", err)
		}
		pod := podNamed(name, fmt.Sprintf("budget-%d", budget))
		pod.Spec.NodeName = nodes[(budget*podsOfBudget+i)%len(nodes)]
		return p.write(func() error {
			_, err := p.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err //nolint:wrapcheck // the caller names the step
		})
	})
	if err != nil {
		return fmt.Errorf("create pods: %w", err)
	}
	return poll(ctx, 5*time.Minute, func(ctx context.Context) error {
		list, err := p.client.CoreV1().Pods(namespace).List(ctx,
			metav1.ListOptions{FieldSelector: "status.phase!=Running", Limit: 1})
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("pod %s does not run", list.Items[0].Name)
		}
		return nil
	})
}

func (p *plain) evictAll(ctx context.Context, r *replica, name string, pods []string) ([]string, error) {
	var mu sync.Mutex
	var took []time.Duration
	var allowed, refused, failed int
	ph, err := measure(ctx, r, phase{name: name, pods: len(pods)}, func() error {
		if _, err := each(pods, clients, func(pod string) error {
			began := time.Now()
			err := p.client.PolicyV1().Evictions(namespace).Evict(ctx,
				&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}})
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			switch {
			case err == nil:
				allowed++
			case apierrors.IsTooManyRequests(err) || apierrors.IsForbidden(err):
				refused++
			default:
				failed++
			}
			return nil
		}); err != nil {
			return err
		}
		return r.idle(ctx, 2*time.Second)
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(took)
	each := float64(len(pods))
	return []string{
		name, fmt.Sprint(len(pods)), fmt.Sprint(allowed), fmt.Sprint(refused), fmt.Sprint(failed),
		millis(took[len(took)/2]), millis(took[len(took)*99/100]), perPod(ph.used.cpu, len(pods)),
		fmt.Sprintf("%.3f", ph.used.writes/each), fmt.Sprintf("%.2f", ph.used.passes/each),
	}, nil
}

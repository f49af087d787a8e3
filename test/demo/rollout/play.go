package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// tick is how often the pods are counted. Times are as exact.
	tick = 100 * time.Millisecond
	// patience is for one step.
	patience = 2 * time.Minute
)

// Play is the story and where it is played.
type Play struct {
	// Client reads what it watches and writes as Owner.
	Client client.Client
	// Out receives a line for each step and for each workload that has done it.
	Out io.Writer
	// Replicas of each workload.
	Replicas int
}

// Run plays the story. The rows are in its order.
func (p *Play) Run(ctx context.Context) ([]Row, error) {
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	steps, all := story(), actors(p.Client, int32(p.Replicas))
	for _, a := range all {
		if err := p.Client.Create(ctx, a.object); err != nil {
			return nil, fmt.Errorf("create %s: %w", a.title(), err)
		}
	}
	fmt.Fprintf(p.Out, "[1/%d] %d pods each of a CloneSet, of a Deployment that asks for it, and of another\n",
		len(steps)+1, p.Replicas)
	if err := p.follow(ctx, all); err != nil {
		return nil, err
	}
	var rows []Row
	for i, s := range steps {
		fmt.Fprintf(p.Out, "[%d/%d] %s\n", i+2, len(steps)+1, s.title)
		for _, a := range all {
			if err := p.begin(ctx, a, s); err != nil {
				return nil, err
			}
		}
		if err := p.follow(ctx, all); err != nil {
			return nil, fmt.Errorf("%s: %w", s.title, err)
		}
		for _, a := range all {
			if !a.idle {
				rows = append(rows, a.row(s))
			}
		}
	}
	return rows, p.end(ctx)
}

// prepare makes the namespace, and waits for the account without which no pod is admitted.
func (p *Play) prepare(ctx context.Context) error {
	if err := p.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, tick, patience, true, func(ctx context.Context) (bool, error) {
		key := types.NamespacedName{Namespace: Namespace, Name: "default"}
		err := p.Client.Get(ctx, key, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the service account: %w", err)
	}
	return nil
}

// begin makes a step with one workload.
func (p *Play) begin(ctx context.Context, a *actor, s step) error {
	pods, err := p.pods(ctx, a.name())
	if err != nil {
		return err
	}
	if err := a.change(ctx, s); err != nil {
		return err
	}
	a.before, a.took = remember(pods), 0
	a.was = observe(pods, a.before, describe(&a.template().Spec)).updated
	return nil
}

// follow returns when all workloads have done a step and no component writes.
func (p *Play) follow(ctx context.Context, all []*actor) error {
	began := time.Now()
	err := wait.PollUntilContextTimeout(ctx, tick, patience, true, func(ctx context.Context) (quiet bool, err error) {
		quiet = true
		for _, a := range all {
			done, err := a.done(ctx)
			if err != nil {
				return false, err
			}
			pods, err := p.pods(ctx, a.name())
			if err != nil {
				return false, err
			}
			a.last = observe(pods, a.before, describe(&a.template().Spec))
			if done && a.took == 0 && !a.idle {
				a.took = max(time.Since(began), 1)
				fmt.Fprintf(p.Out, "%7.1f s  %-20s %d of %d updated, %d pods kept\n",
					a.took.Seconds(), a.title(), a.last.updated, p.Replicas, a.last.kept)
			}
			quiet = quiet && done && a.last.quiet && len(pods) == p.Replicas
		}
		return quiet, nil
	})
	if err != nil {
		return fmt.Errorf("follow the rollout: %w", errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

func (p *Play) pods(ctx context.Context, name string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := p.Client.List(ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{label: name}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return list.Items, nil
}

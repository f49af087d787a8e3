package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/demo/screen"
)

const (
	// tick is how often is looked and drawn. Times are as exact.
	tick = 100 * time.Millisecond
	// patience is for one step.
	patience = 2 * time.Minute
)

// Play is the story and where it is played.
type Play struct {
	// Client reads what it watches and writes as Owner.
	Client client.Client
	Screen *screen.Lines
	// Notes are what the reconciler of CloneSets says.
	Notes *Notes
	// Replicas of each workload.
	Replicas int
}

// Row is what one workload did in one step.
type Row struct {
	screen.Row
	// Part of the summary.
	Part string
	// Workload is its name, and Turn which of the changes to it this was.
	Workload string
	Turn     int
}

// actor is a workload in a step.
type actor struct {
	workload
	generation int64
	turn       int
	idle       bool
	before     memory
	order      []string
	took       time.Duration
	// last is what its pods amounted to when they were looked at last, and was how many were updated before the step.
	last observed
	was  int
}

// Run plays the story. The rows are in its order.
func (p *Play) Run(ctx context.Context) ([]Row, error) {
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	actors := []*actor{
		{workload: cloneSet{p.Notes}}, {workload: deployment{held: true}}, {workload: deployment{}},
	}
	steps := story()
	first := screen.Frame{
		Step:  1,
		Steps: len(steps) + 1,
		Title: fmt.Sprintf("%d pods each of a CloneSet, of a Deployment that asks for it, and of another", p.Replicas),
	}
	for _, a := range actors {
		t := template(a.name())
		a.order, a.before = []string{describe(&t.Spec)}, memory{}
		if err := a.make(ctx, p.Client, int32(p.Replicas)); err != nil {
			return nil, err
		}
	}
	if err := p.follow(ctx, first, actors); err != nil {
		return nil, err
	}
	var rows []Row
	for i, s := range steps {
		for _, a := range actors {
			if err := p.begin(ctx, a, s); err != nil {
				return nil, err
			}
		}
		if err := p.follow(ctx, screen.Frame{Step: i + 2, Steps: first.Steps, Title: s.title}, actors); err != nil {
			return nil, err
		}
		for _, a := range actors {
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
		err := p.Client.Get(ctx, key("default"), &corev1.ServiceAccount{})
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
	t := template(a.name())
	for _, earlier := range story() {
		if earlier.edit(&t); !slices.Contains(a.order, describe(&t.Spec)) {
			a.order = append(a.order, describe(&t.Spec))
		}
		if earlier.title == s.title {
			break
		}
	}
	a.before, a.took = remember(pods), 0
	p.Notes.forget()
	a.was = observe(pods, a.before, a.order).updated
	generation, changed, err := a.change(ctx, p.Client, s)
	if err != nil {
		return err
	}
	a.generation, a.idle = generation, !changed
	if changed {
		a.turn++
	}
	return nil
}

// follow shows a step until all that take part have come to its end and no component writes any more.
func (p *Play) follow(ctx context.Context, f screen.Frame, actors []*actor) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the rollout takes too long"))
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	began := time.Now()
	for {
		f.Elapsed = time.Since(began)
		quiet, err := p.look(ctx, &f, actors)
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if err := p.Screen.Draw(f); err != nil {
			return fmt.Errorf("draw: %w", err)
		}
		if quiet {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("step %d: %w", f.Step, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// look brings a frame up to date.
func (p *Play) look(ctx context.Context, f *screen.Frame, actors []*actor) (quiet bool, err error) {
	quiet, f.Workloads = true, nil
	for _, a := range actors {
		done, says, err := a.look(ctx, p.Client, a.generation)
		if err != nil {
			return false, err
		}
		pods, err := p.pods(ctx, a.name())
		if err != nil {
			return false, err
		}
		a.last = observe(pods, a.before, a.order)
		if done && a.took == 0 {
			a.took = max(f.Elapsed, 1)
		}
		quiet = quiet && done && a.last.quiet && len(pods) == p.Replicas
		w := screen.Workload{
			Name: a.title(), Replicas: p.Replicas, Updated: a.last.updated, Kept: a.last.kept,
			Revisions: a.last.revisions, Notes: says, Idle: a.idle, Took: a.took,
		}
		f.Workloads = append(f.Workloads, w)
	}
	return quiet, nil
}

func (p *Play) pods(ctx context.Context, name string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := p.Client.List(ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{label: name}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return list.Items, nil
}

// row is what a step has come to.
func (a *actor) row(s step) Row {
	return Row{
		Part: s.part, Workload: a.name(), Turn: a.turn,
		Row: screen.Row{
			Name: cmp.Or(s.rows[a.name()], a.title()), Pods: len(a.before), Kept: a.last.kept,
			Restarted: a.last.restarted, Started: a.last.started, Took: a.took,
			Changed: a.last.updated - a.was,
		},
	}
}

package forecast

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// simulation is a workload in memory, with its reconciler and its nodes. A second passes only where nothing is left to
// do.
type simulation struct {
	kind    *kind
	options Options
	name    types.NamespacedName
	// live are the facts before the change, and wanted those after it.
	live, wanted facts
	object       client.Object

	begin, clock time.Time
	server       *apiserver.Server
	reconciler   reconcile.Reconciler
	nodes        *nodes
	guard        *guard
	hooks        *hooks
	record       *record

	// explained takes notes in the place of explain; nil for explain.
	explained func(context.Context, types.NamespacedName, []note.Note)

	// held means that a Deployment was held, and released is when its hold ended; zero for a hold that lasts. rollsOut
	// means that the built-in controller rolls out.
	held, rollsOut bool
	released       time.Time

	// due is when the workload is reconciled although nothing has changed; zero for never.
	due time.Time
	// notes are those of the last pass, and failed is its error.
	notes  []note.Note
	failed error
	// changed is when an object has changed last.
	changed time.Time
}

func (s *simulation) now() time.Time { return s.clock }

func (s *simulation) explain(ctx context.Context, workload types.NamespacedName, notes []note.Note) {
	if s.explained != nil {
		s.explained(ctx, workload, notes)
		return
	}
	s.notes = notes
	s.record.explain(notes)
}

const (
	// stillFor is how long nothing changes in a workload that stands still.
	stillFor = time.Hour
	// longest is how long a forecast looks ahead.
	longest = 90 * 24 * time.Hour
	// mostTurns bounds how often components act at one time.
	mostTurns = 10_000
)

// run lets the time pass until nothing is left to do.
func (s *simulation) run(ctx context.Context) error {
	for {
		if err := s.settle(ctx); err != nil {
			return err
		}
		if err := s.record.count(ctx); err != nil {
			return err
		}
		next, more := s.next()
		if !more || next.Sub(s.begin) > longest {
			return nil
		}
		s.clock = next
	}
}

// settle lets all components act until nothing is left to do at this time.
func (s *simulation) settle(ctx context.Context) error {
	for range mostTurns {
		if err := ctx.Err(); err != nil {
			return err //nolint:wrapcheck // the caller's own error
		}
		before := s.server.Version()
		if err := s.reconcile(ctx); err != nil {
			return err
		}
		s.server.ChangePods(s.nodes.step)
		if s.nodes.err != nil {
			return s.nodes.err
		}
		s.server.ChangePods(s.hooks.answer)
		if s.server.Version() == before {
			return nil
		}
		s.changed = s.clock
	}
	return errors.New("forecast: the objects change without end")
}

// reconcile makes one pass. An error is that of a pass that is made again.
func (s *simulation) reconcile(ctx context.Context) error {
	result, err := s.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: s.name})
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the caller's own error
	}
	after := result.RequeueAfter
	if s.failed = err; err != nil && !errors.Is(err, reconcile.TerminalError(nil)) {
		after = time.Second
	}
	if s.due = (time.Time{}); after > 0 {
		s.due = later(s.clock.Add(time.Second), s.clock.Add(after))
	}
	return nil
}

// next is when something is due; false where the workload stands still, or is done.
func (s *simulation) next() (time.Time, bool) {
	at := s.nodes.next()
	if ready := s.record.nextAvailable(); at.IsZero() || !ready.IsZero() && ready.Before(at) {
		at = ready
	}
	idle := s.clock.Sub(s.changed)
	if due := s.due; !due.IsZero() && (at.IsZero() || due.Before(at)) {
		// A reconciler that asks again and again is not run each time.
		if at = later(due, s.clock.Add(idle/8)); idle > stillFor+time.Duration(s.wanted.grace)*time.Second {
			return time.Time{}, false
		}
	}
	return at, !at.IsZero()
}

// pods lists those of the workload. Each is a copy.
func (s *simulation) pods(ctx context.Context) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := s.server.List(ctx, &list, client.InNamespace(s.name.Namespace)); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if s.record.owns(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

func (s *simulation) available(pod *corev1.Pod) (bool, time.Duration) {
	return scale.Available(pod, s.wanted.minReady, s.clock)
}

// reread reads the facts again that depend on the status.
func (s *simulation) reread(ctx context.Context) error {
	if err := s.server.Get(ctx, s.name, s.object); err != nil {
		return fmt.Errorf("get %s: %w", s.kind.name, err)
	}
	s.wanted = s.kind.facts(s.object)
	if s.kind.native {
		s.notes = reported(s.object)
	}
	if s.kind.bounds == nil {
		return nil
	}
	var err error
	s.wanted.bounds, err = s.kind.bounds(ctx, s)
	return err
}

package controllers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/internal/watches"
)

// maxHeld is how long reconcilers wait at most for the entries of the webhook of new pods, which a leader without the
// right to write them, or without a CA, never has.
const maxHeld = 10 * time.Second

// createsPods reports whether a reconciler creates pods, or workloads with pods.
func createsPods(name string) bool {
	return slices.Contains([]string{
		"advancedcronjob", "broadcastjob", "cloneset", "daemonset", "statefulset", "uniteddeployment",
	}, name)
}

// gate is a source of controllers without events. It is synced once the entries of the webhook of new pods are in
// force. On a cold start the entries are missing, and pods that are created then lack their sidecars for good.
type gate struct {
	most time.Duration
	once sync.Once
	open chan struct{}
}

func newGate(most time.Duration) *gate { return &gate{most: most, open: make(chan struct{})} }

// opening returns a function that opens the gate, and calls next.
func (g *gate) opening(next func()) func() {
	return func() {
		g.once.Do(func() { close(g.open) })
		if next != nil {
			next()
		}
	}
}

// Start implements source.Source.
func (*gate) Start(context.Context, watches.Queue) error {
	return nil
}

// WaitForSync waits until the gate is open. It is no error that the gate stays closed.
func (g *gate) WaitForSync(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, g.most)
	defer cancel()
	select {
	case <-g.open:
	case <-waiting.Done():
		if ctx.Err() == nil {
			log.FromContext(ctx).Info("Creating pods before the webhook of new pods gets them: its entries are not in force")
		}
	}
	return nil
}

// String is in logs.
func (*gate) String() string { return "entries of the webhook of new pods" }

// heldManager is a manager whose controllers reconcile once a source is synced. Their caches are filled meanwhile.
type heldManager struct {
	ctrl.Manager

	until source.Source
}

// Add adds the source to a controller.
func (m heldManager) Add(r manager.Runnable) error {
	if c, ok := r.(interface{ Watch(s source.Source) error }); ok {
		if err := c.Watch(m.until); err != nil {
			return fmt.Errorf("watch %s: %w", m.until, err)
		}
	}
	return m.Manager.Add(r) //nolint:wrapcheck // the method of the manager itself
}

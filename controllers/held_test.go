package controllers

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// collecting is a manager that keeps what is added.
type collecting struct {
	ctrl.Manager

	all []manager.Runnable
}

func (m *collecting) Add(r manager.Runnable) error {
	m.all = append(m.all, r)
	return nil
}

// entered is a gate that reports who waits.
type entered struct {
	*gate
	waits chan struct{}
}

func (e entered) WaitForSync(ctx context.Context) error {
	close(e.waits)
	return e.gate.WaitForSync(ctx)
}

// A controller that creates pods reconciles nothing until API servers send new pods to the webhook. The objects of a
// cold start are in its queue meanwhile.
func TestHeld(t *testing.T) {
	reconciled := make(chan struct{})
	c, err := controller.NewUnmanaged("held", controller.Options{
		SkipNameValidation: ptr.To(true),
		Reconciler: reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
			select {
			case reconciled <- struct{}{}:
			case <-ctx.Done():
			}
			return ctrl.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Func(func(
		_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request],
	) error {
		q.Add(ctrl.Request{})
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	e, called := entered{newGate(time.Minute), make(chan struct{})}, 0
	mgr := &collecting{}
	if err := (heldManager{mgr, e}).Add(c); err != nil || len(mgr.all) != 1 {
		t.Fatalf("%d runnables, %v", len(mgr.all), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-reconciled:
		t.Fatal("the controller reconciles before the entries are in force")
	case <-e.waits:
	}
	e.opening(func() { called++ })()
	<-reconciled
	if called != 1 {
		t.Errorf("the option of the embedder was called %d times", called)
	}
}

// Entries that never come into force hold no controller for good, and end no process.
func TestHeldIsBounded(t *testing.T) {
	if err := newGate(time.Nanosecond).WaitForSync(t.Context()); err != nil {
		t.Error(err)
	}
}

// Each reconciler that is held is in the list.
func TestHeldNames(t *testing.T) {
	n := 0
	for _, name := range Names() {
		if createsPods(name) {
			n++
		}
	}
	if n != 6 {
		t.Errorf("%d reconcilers are held, want 6", n)
	}
}

package podbench

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Process is a process with a reconciler that dies at one of its writes: before the API server makes a write with an
// even number, and after one with an odd number. The next request starts another process.
type Process struct {
	// Start starts a reconciler, which writes with the client alone.
	Start func(client.WithWatch) reconcile.Reconciler
	// Server is what the reconciler reads from and writes to.
	Server client.WithWatch

	mu             sync.Mutex
	running        reconcile.Reconciler
	dead           bool
	writes, diesAt int
}

var errDead = errors.New("the process is dead")

// DieAt has the process die at its nth write from now on; never for 0.
func (p *Process) DieAt(n int) { p.writes, p.diesAt = 0, n }

// Written is how many writes there were since DieAt.
func (p *Process) Written() int { return p.writes }

// Restart starts another process with the next request.
func (p *Process) Restart() { p.running = nil }

// Reconcile is a request to the process that runs.
func (p *Process) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if p.running == nil {
		p.running = p.Start(Writes(p.Server, p.write))
	}
	result, err := p.running.Reconcile(ctx, request)
	if p.dead {
		p.running, p.dead, p.diesAt = nil, false, 0
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return result, err
}

func (p *Process) write(_ string, write func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	p.writes++
	p.dead = p.writes == p.diesAt
	if p.dead && p.diesAt%2 == 0 {
		return errDead
	}
	if err := write(); err != nil || !p.dead {
		return err
	}
	return errDead
}

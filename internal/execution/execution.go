// Package execution sends the writes of a pass in parallel.
package execution

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Send sends one write. It is called from several goroutines.
type Send func(context.Context, *workload.Write) (write.Object, error)

// Asking returns a Send that passes the questions of a pass to ask, and everything else to send. Set Input.Ask only where ask is not nil.
func Asking(ask func(context.Context, []*corev1.Pod) error, send Send) Send {
	return func(ctx context.Context, w *workload.Write) (write.Object, error) {
		if w.Action == workload.ActionAsk {
			return nil, ask(ctx, w.Asked)
		}
		return send(ctx, w)
	}
}

// Run sends all writes of a pass. Those of a stage go out in batches that grow, each with the writes that follow from its
// answers. An API server that fails ends the stage; what it refuses for one object stops no other, except creations, which
// are alike. now is the clock of the answers.
func Run(ctx context.Context, pass *workload.Pass, now func() time.Time, send Send) {
	r := runner{pass: pass, now: now, send: send}
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		if writes[0].Verb == write.Create {
			_, _ = batches.Run(writes, r.follow(ctx)) // the pass has the failures
		} else {
			_, _ = batches.Each(writes, r.follow(ctx))
		}
	}
}

type runner struct {
	mu   sync.Mutex
	pass *workload.Pass
	now  func() time.Time
	send Send
}

// follow sends a write, and then those that follow from the answers.
func (r *runner) follow(ctx context.Context) func(*workload.Write) error {
	return func(first *workload.Write) error {
		for writes := []*workload.Write{first}; len(writes) > 0; {
			object, err := r.sendOne(ctx, writes[0])
			next := r.answer(writes[0], object, err)
			if err != nil && len(next) == 0 && len(writes) == 1 {
				return err
			}
			writes = append(writes[1:], next...)
		}
		return nil
	}
}

// sendOne answers a panic of the sender as a failure of the write, which else would count as under way.
func (r *runner) sendOne(ctx context.Context, w *workload.Write) (object write.Object, err error) { //nolint:ireturn // whichever type the write is of
	_, err = batches.Each([]*workload.Write{w}, func(w *workload.Write) (err error) {
		object, err = r.send(ctx, w)
		return err
	})
	return object, err
}

func (r *runner) answer(w *workload.Write, object write.Object, err error) []*workload.Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pass.Answer(r.now(), w, object, err)
}

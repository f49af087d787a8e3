package broadcastjob

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/write"
)

// pass executes what package broadcast plans.
type pass struct {
	*Reconciler
	*snapshot

	plan broadcast.Pass

	mu sync.Mutex
	// deleted and created are the pods whose writes were answered.
	deleted []broadcast.Deletion
	created int
	// taken are errors of pods whose name another pod has. They stop no other pod.
	taken []error
}

// after is when to look again.
func (p *pass) after() time.Duration { return requeue.Sooner(p.plan.RequeueAfter, p.recheckAfter) }

// execute sends the writes of the pass. A status that ends the job is the first of them, or there is none.
func (p *pass) execute(ctx context.Context) error {
	if p.plan.StatusFirst {
		if err := p.report(ctx, p.stalled(p.plan.Status)); err != nil {
			return err
		}
	}
	failed := errors.Join(p.deletePods(ctx), p.createPods(ctx))
	if !p.plan.StatusFirst {
		failed = errors.Join(failed, p.report(ctx, p.stalled(p.plan.Conclude(p.created, p.deleted))))
	}
	if p.plan.DeleteJob {
		failed = errors.Join(failed, p.jobs.Delete(ctx, p.api.Client, p.job))
	}
	p.emitNotes(ctx)
	return failed
}

// deletePods deletes pods of their own: what holds one up does not hold up the others. A pod that has changed since it was observed may have
// ended, and is observed again.
func (p *pass) deletePods(ctx context.Context) error {
	_, err := batches.Each(p.plan.Delete, func(d broadcast.Deletion) error {
		uid, version := d.Pod.UID, d.Pod.ResourceVersion
		err := p.api.Client.Delete(ctx, d.Pod, client.Preconditions{UID: &uid, ResourceVersion: &version})
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case apierrors.IsConflict(err):
			p.recheckAfter = requeue.Sooner(p.recheckAfter, soon)
			return nil
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("delete pod %s: %w", d.Pod.Name, err)
		}
		p.deleted = append(p.deleted, d)
		p.api.Normalf(p.job, reasonDeleted, "Deleted pod: %s", d.Pod.Name)
		return nil
	})
	if len(p.deleted) > 0 {
		p.noteDeleted(p.snapshot, p.deleted)
	}
	p.emitFailure(reasonFailedDelete, "Error deleting", err)
	return err
}

// createPods creates pods that are alike: what holds one up holds up the rest, until the next pass.
func (p *pass) createPods(ctx context.Context) error {
	_, err := batches.Run(p.plan.Create, func(pod *corev1.Pod) error { return p.createPod(ctx, pod) })
	err = errors.Join(append(p.taken, err)...)
	p.emitFailure(reasonFailedCreate, "Error creating", err)
	return err
}

func (p *pass) createPod(ctx context.Context, pod *corev1.Pod) error {
	answer, err := runtimeclient.Send(ctx, p.api.Client, &write.Write{Verb: write.Create, Object: pod})
	made, isPod := answer.(*corev1.Pod)
	switch {
	case apierrors.IsAlreadyExists(err):
		return p.find(ctx, pod)
	case err != nil:
		p.pods.Doubt(p.key(), pod, err)
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	case !isPod:
		return fmt.Errorf("create pod %s: the answer is %T", pod.Name, answer)
	}
	p.pods.Created(p.key(), made)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.created++
	p.api.Normalf(p.job, reasonCreated, "Created pod: %s", pod.Name)
	return nil
}

// find looks at the pod that has the name of one that was to be created. An earlier process may have created it a moment ago.
func (p *pass) find(ctx context.Context, pod *corev1.Pod) error {
	have := &corev1.Pod{}
	switch err := p.api.Live.Get(ctx, client.ObjectKeyFromObject(pod), have); {
	case apierrors.IsNotFound(err): // it has gone since
		return fmt.Errorf("create pod %s: its predecessor was still there", pod.Name)
	case err != nil:
		return fmt.Errorf("get pod %s: %w", pod.Name, err)
	}
	if owned.Controls(p.job, have) {
		p.pods.Created(p.key(), have)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.recheckAfter = requeue.Sooner(p.recheckAfter, soon)
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = append(p.taken, fmt.Errorf("create pod %s: a pod of this name exists and is not of the job", pod.Name))
	return nil
}

// soon is when to look again at pods that the cache does not show as they are.
const soon = time.Second

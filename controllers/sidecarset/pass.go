package sidecarset

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// pass sends what package rollout plans. What follows from the answers is planned there, too.
type pass struct {
	*Reconciler
	*snapshot

	state      *state
	resolution revision.Resolution
	plan       *rollout.Pass
	requeue    requeue.Earliest

	mu sync.Mutex // held where several pods are written at the same time
}

// update plans and sends changes of pods. It returns what failed.
func (p *pass) update(ctx context.Context, begun time.Time) error {
	var failed error
	p.plan, failed = rollout.Plan(rollout.Input{
		Set: p.set, Revision: p.resolution.Name, Pods: slices.Concat(slices.Collect(maps.Values(p.pods))...), Namespaces: p.namespaces, Now: p.now,
		Gone: p.gone(ctx), May: p.options.MayUpdate, Held: p.state.held,
	})
	p.state.took.Store(int64(p.api.Now().Sub(begun)))
	for changes := p.plan.Next(); len(changes) > 0; changes = p.plan.Next() {
		// The plan has the failures, except those of changes that panicked.
		_, err := batches.Each(changes, func(c *rollout.Change) error { return p.send(ctx, c) })
		if panicked := (*batches.PanicError)(nil); errors.As(err, &panicked) {
			failed = errors.Join(failed, panicked)
		}
	}
	p.state.held = p.plan.Held()
	p.requeue.In(p.plan.RequeueAfter())
	p.requeue.In(p.recheckAfter)
	if p.options.Explain != nil {
		p.options.Explain(ctx, p.set.Name, p.plan.Notes())
	}
	return errors.Join(failed, p.plan.Err())
}

// send sends a change, and those that follow from its answer. Of a pod that is no longer what an update was decided upon, the pass
// gets the live state.
func (p *pass) send(ctx context.Context, first *rollout.Change) error {
	for changes := []*rollout.Change{first}; len(changes) > 0; {
		c := changes[0]
		pod, err := p.sendOne(ctx, c)
		if write.IsOutdated(err) && !apierrors.IsNotFound(err) && c.Action != rollout.ActionMark {
			pod, _ = stored.Find[corev1.Pod](ctx, p.api.Live, client.ObjectKeyFromObject(c.Pod)) // else the next pass observes it
		}
		changes = append(changes[1:], p.answer(c, pod, err)...)
		if err != nil && !write.IsOutdated(err) {
			return err
		}
	}
	return nil
}

func (r *Reconciler) sendOne(ctx context.Context, c *rollout.Change) (*corev1.Pod, error) {
	object, err := runtimeclient.Send(ctx, r.api.Client, &c.Write)
	pod, _ := object.(*corev1.Pod)
	return pod, err
}

// answer gives an answer to the plan, keeps the pod for the next pass, and emits what is to be emitted of the change.
func (p *pass) answer(c *rollout.Change, pod *corev1.Pod, err error) []*rollout.Change {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod != nil && pod.UID == c.Pod.UID {
		p.state.pods.Patched(pod)
	}
	if c.Action == rollout.ActionReset {
		p.emitReset(c.Pod, err)
	}
	return p.plan.Answer(c, pod, err)
}

// release removes a set that is gone from the conditions of its pods.
func (r *Reconciler) release(ctx context.Context, name string) (ctrl.Result, error) {
	pods, err := r.podsOf(ctx, name)
	if err != nil {
		return ctrl.Result{}, err
	}
	changes := rollout.Forget(pods, name, r.api.Now())
	if len(changes) == 0 || !r.isGone(ctx, name) {
		return ctrl.Result{}, nil
	}
	var again requeue.Earliest
	_, err = batches.Each(changes, func(c *rollout.Change) error {
		_, err := r.sendOne(ctx, c)
		if !write.IsOutdated(err) {
			return err
		}
		again.In(rollout.RetryOutdated)
		return nil
	})
	return ctrl.Result{RequeueAfter: again.After()}, err
}

// report writes the status of the pods as the writes left them, if it changed.
func (p *pass) report(ctx context.Context) error {
	status := p.plan.Status()
	status.CollisionCount = ptr.To(ptr.Deref(p.resolution.Collisions, 0))
	fresh := *p.set
	fresh.Status = status
	return p.writeStatus(ctx, &fresh)
}

func (p *pass) writeStatus(ctx context.Context, fresh *set) error {
	_, err := p.status.Write(ctx, p.set, fresh, map[string]any{ // the schema requires them
		"matchedPods": fresh.Status.MatchedPods, "updatedPods": fresh.Status.UpdatedPods, "readyPods": fresh.Status.ReadyPods,
	})
	return err
}

// refuse reports a set that cannot be decoded, or of which no revision can be made. Nothing else is done.
func (p *pass) refuse(ctx context.Context, why error) error {
	fresh := *p.set
	fresh.Status.ObservedGeneration = p.set.Generation
	if err := p.writeStatus(ctx, &fresh); err != nil {
		return err
	}
	p.emitInvalid(why)
	return reconcile.TerminalError(why)
}

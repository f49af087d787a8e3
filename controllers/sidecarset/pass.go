package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/sidecar/rollout"
	"github.com/kruisekit/kruisekit/write"
)

// pass executes what package rollout plans. What follows from the answers is planned there, too.
type pass struct {
	*Reconciler
	*snapshot

	state      *state
	resolution revision.Resolution
	input      rollout.Input
	plan       rollout.Plan
	requeue    requeue.Earliest

	mu      sync.Mutex // held where several pods are written at the same time
	answers []rollout.Answer
	written bool
}

const (
	rounds = 3                      // at most in one pass: a refused write makes room for others
	soon   = 100 * time.Millisecond // when to continue after the last of them
)

// update plans and writes, and plans again where a write was refused or outdated.
func (p *pass) update(ctx context.Context, begun time.Time) error {
	p.input = rollout.Input{
		Set: p.set, Revision: p.resolution.Name, Pods: slices.Concat(slices.Collect(maps.Values(p.pods))...), Namespaces: p.namespaces, Now: p.now,
		Gone: p.gone(ctx), May: p.options.MayUpdate, Held: p.state.held,
	}
	var errs []error
	for round := range rounds {
		var err error
		p.plan, err = rollout.Compute(p.input)
		if round == 0 {
			p.state.took.Store(int64(p.api.Now().Sub(begun)))
			errs = append(errs, err)
		}
		errs = append(errs, p.execute(ctx))
		var again bool
		p.input, again = p.input.Follow(p.answers)
		p.answers = nil
		p.requeue.Reset()
		p.requeue.In(p.plan.RequeueAfter)
		if !again {
			break
		}
		p.requeue.In(soon)
	}
	p.state.held = p.input.Held
	p.requeue.In(p.recheckAfter)
	if p.options.Explain != nil {
		p.options.Explain(ctx, p.set.Name, p.plan.Notes)
	}
	return errors.Join(errs...)
}

// execute makes the writes of the plan. A refused one keeps no other one from being made.
func (p *pass) execute(ctx context.Context) error {
	_, marked := batches.Each(stored.Pointers(p.plan.Mark), func(m *rollout.Mark) error { return p.mark(ctx, m) })
	if n := p.plan.NewlyBlocked(); n > 0 && marked == nil {
		p.api.Event(p.set, corev1.EventTypeNormal, reasonNotUpgradable, fmt.Sprintf("%d pods cannot be updated in place, since more than images has changed", n))
	}
	_, flipped := batches.Each(stored.Pointers(p.plan.Flip), func(w *rollout.Write) error { return p.flip(ctx, w) })
	_, updated := batches.Each(stored.Pointers(p.plan.Update), func(w *rollout.Write) error { return p.updatePod(ctx, w) })
	return errors.Join(marked, flipped, updated)
}

func (p *pass) updatePod(ctx context.Context, w *rollout.Write) error {
	fresh, err := p.write(ctx, w)
	if err != nil {
		if write.IsRefused(err) || apierrors.IsInternalError(err) {
			p.answer(rollout.Answer{Refused: w.Pod.UID})
		}
		return fmt.Errorf("update pod %s/%s: %w", w.Pod.Namespace, w.Pod.Name, err)
	}
	if fresh != nil && w.Mark != nil {
		return p.mark(ctx, w.Mark)
	}
	return nil
}

func (p *pass) flip(ctx context.Context, w *rollout.Write) error {
	fresh, err := p.write(ctx, w)
	switch {
	case err != nil:
		p.api.Event(w.Pod, corev1.EventTypeWarning, reasonFailedReset, fmt.Sprintf("failed to reset a sidecar container to the empty image: %v", err))
		return fmt.Errorf("reset containers of pod %s/%s: %w", w.Pod.Namespace, w.Pod.Name, err)
	case fresh != nil:
		p.api.Event(w.Pod, corev1.EventTypeNormal, reasonReset, "reset sidecar container image empty successfully")
	}
	return nil
}

// write makes one write of a pod, and returns what the pod became; nil for one that is gone, or that has changed meanwhile.
func (p *pass) write(ctx context.Context, w *rollout.Write) (*corev1.Pod, error) {
	patch, err := w.Patch()
	if err != nil {
		return nil, err
	}
	fresh := target(w.Pod)
	err = p.api.Client.Patch(ctx, fresh, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case apierrors.IsNotFound(err), (apierrors.IsInvalid(err) || apierrors.IsConflict(err)) && p.isOutdated(ctx, w):
		return nil, nil
	case err != nil:
		return nil, err
	}
	p.answer(rollout.Answer{Pod: fresh})
	return fresh, nil
}

// isOutdated reports whether the live pod is no longer what a write was planned for. The next plan is for the live pod.
func (p *pass) isOutdated(ctx context.Context, w *rollout.Write) bool {
	live, err := stored.Find[corev1.Pod](ctx, p.api.Live, client.ObjectKeyFromObject(w.Pod))
	switch {
	case err != nil || live != nil && !w.IsOutdated(live):
		return false
	case live != nil && live.UID == w.Pod.UID: // else the cache will show the end of the pod
		p.answer(rollout.Answer{Pod: live, Outdated: true})
	}
	return true
}

// answer keeps an answer for the next plan, and the pod for the next pass.
func (p *pass) answer(a rollout.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = append(p.answers, a)
	if a.Pod != nil {
		p.written = true
		p.state.pods.Patched(types.NamespacedName{Namespace: a.Pod.Namespace}, a.Pod)
	}
}

// target is the object into which the answer to a patch of a pod is decoded.
func target(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
}

func (p *pass) mark(ctx context.Context, m *rollout.Mark) error {
	fresh, err := p.writeMark(ctx, m)
	if fresh != nil {
		p.answer(rollout.Answer{Pod: fresh})
	}
	return err
}

// writeMark writes a condition, and returns what the pod became; nil for one that is gone.
func (r *Reconciler) writeMark(ctx context.Context, m *rollout.Mark) (*corev1.Pod, error) {
	patch, err := m.Patch()
	if err != nil {
		return nil, err
	}
	fresh := target(m.Pod)
	err = r.api.Client.Status().Patch(ctx, fresh, client.RawPatch(types.StrategicMergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("write condition of pod %s/%s: %w", m.Pod.Namespace, m.Pod.Name, err)
	}
	return fresh, nil
}

// release removes a set that is gone from the conditions of its pods.
func (r *Reconciler) release(ctx context.Context, name string) error {
	pods, err := r.podsOf(ctx, name)
	if err != nil {
		return err
	}
	marks := rollout.Forget(pods, name, r.api.Now())
	if len(marks) == 0 || !r.isGone(ctx, name) {
		return nil
	}
	_, err = batches.Each(stored.Pointers(marks), func(m *rollout.Mark) error {
		_, err := r.writeMark(ctx, m)
		return err
	})
	return err
}

// report writes the status of the pods as the writes left them, if it changed.
func (p *pass) report(ctx context.Context) error {
	status := p.plan.Status
	if p.written {
		var err error
		if status, err = rollout.Count(p.input); err != nil && !errors.As(err, new(*rollout.SpecError)) {
			return err
		}
	}
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

// refuse is all that is done with a set that cannot be read, or of which no revision can be made.
func (p *pass) refuse(ctx context.Context, why error) error {
	fresh := *p.set
	fresh.Status.ObservedGeneration = p.set.Generation
	if err := p.writeStatus(ctx, &fresh); err != nil {
		return err
	}
	p.emitInvalid(why)
	return reconcile.TerminalError(why)
}

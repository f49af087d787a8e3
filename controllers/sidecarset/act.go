package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/sidecar/rollout"
)

// act is one pass: what was seen, what follows from it, and what became of it.
type act struct {
	*Reconciler
	*snapshot

	// looked is how long it took to observe.
	looked   time.Duration
	revision revision.Resolution
	plan     rollout.Plan
	writes   *ledger.Ledger[*corev1.Pod]

	// known says of the sets that pods tell of whether they are gone.
	known map[string]bool

	mu sync.Mutex // held where several pods are written at the same time
	// fresh are the pods that this pass has written.
	fresh map[types.UID]*corev1.Pod
	// replan says that a write of the last plan was not made, so that another plan may find something else to do.
	replan bool
	after  time.Duration
}

const (
	// rounds are the most plans of a pass: what is refused makes room for others.
	rounds = 3
	// soon is when to go on after the last of them.
	soon = 100 * time.Millisecond
)

// lead plans and writes, again where a write could not be made.
func (a *act) lead(ctx context.Context) error {
	var errs []error
	for round := range rounds {
		a.after, a.replan = 0, false
		begun := a.options.Now()
		var err error
		a.plan, err = rollout.Compute(a.input(ctx))
		if round == 0 {
			a.memory.took(a.set.Name, a.Reconciler, a.looked+a.options.Now().Sub(begun))
			errs = append(errs, err)
		}
		if errs = append(errs, a.carryOut(ctx)); !a.replan {
			break
		}
	}
	if a.options.Explain != nil {
		a.options.Explain(ctx, a.set.Name, a.plan.Notes)
	}
	return errors.Join(errs...)
}

// carryOut makes the writes of the plan.
func (a *act) carryOut(ctx context.Context) error {
	marked := each(a.plan.Mark, func(m *rollout.Mark) error { return a.mark(ctx, m) })
	if n := newlyStuck(a.plan.Mark); n > 0 && marked == nil {
		a.tell(a.set, corev1.EventTypeNormal, reasonNotUpgradable, fmt.Sprintf("%d pods cannot be updated in place, since more than images has changed", n))
	}
	flipped := each(a.plan.Flip, func(w *rollout.Write) error { return a.flip(ctx, w) })
	updated := each(a.plan.Update, func(w *rollout.Write) error { return a.update(ctx, w) })
	return errors.Join(marked, flipped, updated)
}

// each makes writes in growing batches. What is refused does not keep the others from being made; an API server that fails
// does.
func each[T any](all []T, do func(*T) error) error {
	var mu sync.Mutex
	var refusals []error
	places := make([]*T, len(all))
	for i := range all {
		places[i] = &all[i]
	}
	_, err := batches.Run(places, func(item *T) error {
		err := do(item)
		if !isRefusal(err) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		refusals = append(refusals, err)
		return nil
	})
	return errors.Join(append(refusals, err)...)
}

// isRefusal says whether an error is about the one request alone.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch code := answer.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// mayBeRefusal says whether an error can be about the one request: also what a webhook of somebody says that fails.
func mayBeRefusal(err error) bool { return isRefusal(err) || apierrors.IsInternalError(err) }

func (a *act) update(ctx context.Context, w *rollout.Write) error {
	fresh, err := a.write(ctx, w)
	if err != nil {
		if mayBeRefusal(err) {
			a.memory.refuse(a.set.Name, a.Reconciler, w.Pod.UID)
			a.again()
		}
		return fmt.Errorf("update pod %s/%s: %w", w.Pod.Namespace, w.Pod.Name, err)
	}
	if fresh != nil && w.Mark != nil {
		return a.mark(ctx, w.Mark)
	}
	return nil
}

func (a *act) flip(ctx context.Context, w *rollout.Write) error {
	fresh, err := a.write(ctx, w)
	switch {
	case err != nil:
		a.tell(w.Pod, corev1.EventTypeWarning, reasonFailedReset, fmt.Sprintf("failed to reset a sidecar container to the empty image: %v", err))
		return fmt.Errorf("reset containers of pod %s/%s: %w", w.Pod.Namespace, w.Pod.Name, err)
	case fresh != nil:
		a.tell(w.Pod, corev1.EventTypeNormal, reasonReset, "reset sidecar container image empty successfully")
	}
	return nil
}

// write makes one write of a pod, and gives what it became; nil for one that is gone, or has become something else meanwhile.
func (a *act) write(ctx context.Context, w *rollout.Write) (*corev1.Pod, error) {
	patch, err := w.Patch()
	if err != nil {
		return nil, err
	}
	fresh := answer(w.Pod)
	err = a.client.Patch(ctx, fresh, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case apierrors.IsNotFound(err), (apierrors.IsInvalid(err) || apierrors.IsConflict(err)) && a.isLate(ctx, w):
		return nil, nil
	case err != nil:
		return nil, err
	}
	a.note(fresh)
	return fresh, nil
}

// isLate says whether a pod is not any more what a write was made for, and takes up what it is: the next plan is of that.
func (a *act) isLate(ctx context.Context, w *rollout.Write) bool {
	live := answer(w.Pod)
	switch err := a.live().Get(ctx, client.ObjectKeyFromObject(live), live); {
	case apierrors.IsNotFound(err):
		return true
	case err != nil:
		return false
	case live.UID != w.Pod.UID: // the cache will tell
		return true
	}
	changed := !slices.EqualFunc(live.Spec.Containers, w.Pod.Spec.Containers, func(a, b corev1.Container) bool { return a.Name == b.Name && a.Image == b.Image })
	for key := range w.Annotations {
		now, is := live.Annotations[key]
		then, was := w.Pod.Annotations[key]
		changed = changed || is != was || now != then
	}
	if changed {
		a.note(live)
		a.again()
	}
	return changed
}

// again asks for another plan, and for another pass where this one has had its plans.
func (a *act) again() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replan = true
	a.wake(soon)
}

// answer is what the answer to a patch of a pod is decoded into.
func answer(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
}

// mark writes a condition, and takes up what the pod became.
func (a *act) mark(ctx context.Context, m *rollout.Mark) error {
	fresh, err := a.writeMark(ctx, m)
	if fresh != nil {
		a.note(fresh)
	}
	return err
}

// writeMark gives what the pod became; nil for one that is gone.
func (r *Reconciler) writeMark(ctx context.Context, m *rollout.Mark) (*corev1.Pod, error) {
	patch, err := m.Patch()
	if err != nil {
		return nil, err
	}
	fresh := answer(m.Pod)
	err = r.client.Status().Patch(ctx, fresh, client.RawPatch(types.StrategicMergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("write condition of pod %s/%s: %w", m.Pod.Namespace, m.Pod.Name, err)
	}
	return fresh, nil
}

// release lets pods say no more of a set that is gone than that it was there.
func (r *Reconciler) release(ctx context.Context, name string) error {
	pods, err := r.podsOf(ctx, name)
	if err != nil {
		return err
	}
	marks := rollout.Forget(pods, name, r.options.Now())
	if len(marks) == 0 || !r.isGone(ctx, name) {
		return nil
	}
	return each(marks, func(m *rollout.Mark) error {
		_, err := r.writeMark(ctx, m)
		return err
	})
}

// newlyStuck counts the pods that are told for the first time that they cannot be updated.
func newlyStuck(marks []rollout.Mark) int {
	n := 0
	for i := range marks {
		if !marks[i].Upgradable && marks[i].New {
			n++
		}
	}
	return n
}

// note takes up what a pod has become.
func (a *act) note(fresh *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes.Patched(types.NamespacedName{Namespace: fresh.Namespace}, fresh)
	if a.fresh == nil {
		a.fresh = map[types.UID]*corev1.Pod{}
	}
	a.fresh[fresh.UID] = fresh
}

// wake asks for another pass after a while.
func (a *act) wake(after time.Duration) {
	if a.after <= 0 || after < a.after {
		a.after = after
	}
}

package cloneset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/execution"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// execute sends the writes of the pass.
func (r *Reconciler) execute(ctx context.Context, s *snapshot, p *plan) {
	if !p.runs(s) {
		p.scaleErr = p.invalid
		return
	}
	r.emitLimit(s, p)
	if len(p.pass.Creations()) == 0 && len(s.known.pending) > 0 {
		r.memory.Note(s.key(), func(k *knowledge) { k.pending = nil })
		p.after.In(time.Millisecond) // their claims are not needed any more
	}
	var created sync.Map
	execution.Run(ctx, p.pass, r.api.Now, execution.Asking(r.options.Ask, func(ctx context.Context, w *workload.Write) (write.Object, error) {
		answer, err := runtimeclient.Send(ctx, r.api.Client, &w.Write)
		r.dependents.Record(s.key(), &w.Write, answer, err)
		if w.Action == workload.ActionCreate && w.Object == w.Pod && (err == nil || apierrors.IsAlreadyExists(err)) { // else the name is another's
			created.Store(w.Pod.Labels[kruise.CloneSetInstanceIDKey], true)
		}
		r.emitWrite(s, w, answer, err)
		return answer, err
	}))
	r.emitWaits(s, p)
	p.after.In(p.pass.RequeueAfter())
	p.scaleErr, p.updateErr = execution.Errors(p.pass, func(f workload.Failure) { r.emitNotInPlace(s, f) })
	outdated, err := execution.Outdated(p.pass, s.known.outdated)
	if err != nil {
		p.updateErr = errors.Join(p.updateErr, err)
	}
	r.memory.Note(s.key(), func(k *knowledge) {
		k.outdated, k.repeats = outdated, p.pass.Repeats()
		if len(p.ids) > 0 {
			k.pending = slices.DeleteFunc(slices.Concat(s.known.pending, p.ids), func(id string) bool {
				_, exists := created.Load(id)
				return exists
			})
			slices.Sort(k.pending)
			k.pending = slices.Compact(k.pending)
		}
	})
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.key(), p.notes())
	}
}

// revise makes the template of the set the newest revision.
func (r *Reconciler) revise(ctx context.Context, s *snapshot, p *plan) error {
	if s.set.DeletionTimestamp != nil {
		return nil
	}
	newest, err := r.dependents.History().Ensure(ctx, s.key(), p.newest)
	s.Revisions = history.Replace(s.Revisions, newest)
	if err == nil {
		return nil
	}
	r.api.Warningf(s.set, reasonFailedCreate, "failed to keep the revision: %v", err)
	status := s.set.Status.DeepCopy()
	var taken *history.TakenError
	if errors.As(err, &taken) { // the next pass resolves another name
		status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	}
	return errors.Join(err, r.giveUp(ctx, s, status, err))
}

// trim deletes revisions that no pod has and that are beyond the limit, and names of pods to delete that are gone.
func (r *Reconciler) trim(ctx context.Context, s *snapshot, p *plan) error {
	named := s.set.Spec.ScaleStrategy.PodsToDelete
	live, there := map[string]bool{p.current: true, p.update: true}, map[string]bool{}
	for _, pod := range p.pass.Pods() {
		live[pod.Labels[kruise.PodRevisionLabelKey]] = true
		if len(named) > 0 {
			there[pod.Name] = true
		}
	}
	if err := r.dependents.History().Delete(ctx, s.key(), revision.Trim(s.Revisions, slices.Sorted(maps.Keys(live)), *s.set.Spec.RevisionHistoryLimit)); err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(named), func(name string) bool { return !there[name] })
	if len(kept) == len(named) {
		return nil
	}
	const path = "/spec/scaleStrategy/podsToDelete"
	w := write.JSON(stored.Kind{GVK: gvk()}.Named(s.key()), write.Main, write.Test(path, named), write.Replace(path, kept))
	if _, err := runtimeclient.Send(ctx, r.api.Client, w); err != nil && !write.IsOutdated(err) {
		return fmt.Errorf("trim spec.scaleStrategy.podsToDelete: %w", err)
	}
	return nil
}

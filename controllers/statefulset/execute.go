package statefulset

import (
	"context"
	"errors"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/execution"
	"github.com/kruisekit/kruisekit/internal/history"
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
	execution.Run(ctx, p.pass, r.api.Now, execution.Asking(r.options.Ask, func(ctx context.Context, w *workload.Write) (write.Object, error) {
		answer, err := runtimeclient.Send(ctx, r.api.Client, &w.Write)
		r.dependents.Record(s.key(), &w.Write, answer, err)
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
	r.memory.Note(s.key(), func(k *knowledge) { k.outdated, k.repeats = outdated, p.pass.Repeats() })
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

// trim deletes revisions that no pod has and that are beyond the limit.
func (r *Reconciler) trim(ctx context.Context, s *snapshot, p *plan) error {
	if s.set.DeletionTimestamp != nil {
		return nil
	}
	live := []string{p.current, p.update}
	for _, pod := range append(p.pass.Pods(), s.Inactive...) {
		live = append(live, pod.Labels[kruise.PodRevisionLabelKey])
	}
	return r.dependents.History().Delete(ctx, s.key(), revision.Trim(s.Revisions, live, *s.set.Spec.RevisionHistoryLimit))
}

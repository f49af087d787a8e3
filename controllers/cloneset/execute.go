package cloneset

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
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/execution"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/ledger"
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
	if len(p.pass.Creations()) == 0 && len(s.pendingCreates) > 0 {
		r.memory.note(s.key(), func(k *knowledge) { clear(k.pending) })
		p.after.In(time.Millisecond) // their claims are not needed any more
	}
	started := sync.OnceFunc(func() {
		r.memory.note(s.key(), func(k *knowledge) {
			for _, id := range p.ids {
				k.pending[id] = true
			}
		})
	})
	execution.Run(ctx, p.pass, r.api.Now, func(ctx context.Context, w *workload.Write) (write.Object, error) {
		if w.Action == workload.ActionCreate {
			started()
		}
		answer, err := runtimeclient.Send(ctx, r.api.Client, &w.Write)
		r.record(s, w, answer, err)
		r.emitWrite(s, w, answer, err)
		return answer, err
	})
	r.memory.note(s.key(), func(k *knowledge) { k.repeats = p.pass.Repeats() })
	p.after.In(p.pass.RequeueAfter())
	var scaling, updating []workload.Failure
	for _, f := range p.pass.Failures() {
		if f.NotInPlace {
			f.Err = fmt.Errorf("pod %s can only be updated in place: %w", f.Object, f.Err)
			if len(updating) < workload.MaxErrors { // else the condition lacks the text, and the event would come each time
				r.emitNotInPlace(s, f)
			}
		}
		if f.Scaling {
			scaling = append(scaling, f)
		} else {
			updating = append(updating, f)
		}
	}
	p.scaleErr, p.updateErr = workload.Err(scaling), workload.Err(updating)
	if r.isStuck(s, p) {
		p.updateErr = errors.Join(p.updateErr, errOutdated)
	}
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.key(), p.pass.Notes())
	}
}

// errOutdated ends a series of passes whose writes the API server finds outdated although each pass observes the pods again.
var errOutdated = errors.New("pods are not what was observed, time and again: another writer changes them, or the cache stands still")

// mostOutdated is how many passes in a row may find that they were decided upon older objects.
const mostOutdated = 10

// isStuck counts such passes.
func (r *Reconciler) isStuck(s *snapshot, p *plan) (stuck bool) {
	r.memory.note(s.key(), func(k *knowledge) {
		k.outdated++
		if !p.pass.IsOutdated() {
			k.outdated = 0
		}
		stuck = k.outdated > mostOutdated
	})
	return stuck
}

// record keeps what the API server answered until the cache shows it.
func (r *Reconciler) record(s *snapshot, w *workload.Write, answer write.Object, err error) {
	switch object := w.Object.(type) {
	case *corev1.Pod:
		if w.Verb == write.Create && (err == nil || apierrors.IsAlreadyExists(err)) { // else the name is another's
			id := object.Labels[pub.CloneSetInstanceIDKey]
			r.memory.note(s.key(), func(k *knowledge) { delete(k.pending, id) })
		}
		recordIn(r.podWrites, s, w, err)(object, answer)
	case *corev1.PersistentVolumeClaim:
		recordIn(r.claimWrites, s, w, err)(object, answer)
	}
}

// recordIn returns what records a write in the ledger of its kind.
func recordIn[T write.Object](l *ledger.Ledger[T], s *snapshot, w *workload.Write, err error) func(object T, answer write.Object) {
	return func(object T, answer write.Object) {
		fresh, _ := answer.(T)
		switch {
		case w.Verb == write.Create && err != nil:
			l.Doubt(s.key(), object, err)
		case w.Verb == write.Create:
			l.Created(s.key(), fresh)
		case w.Verb == write.Delete && (err == nil || apierrors.IsNotFound(err)):
			l.Deleted(s.key(), object)
		case w.Verb == write.Patch && err == nil:
			l.Patched(s.key(), fresh)
		}
	}
}

// revise makes the template of the set the newest revision.
func (r *Reconciler) revise(ctx context.Context, s *snapshot, p *plan) error {
	if s.set.DeletionTimestamp != nil {
		return nil
	}
	newest, err := r.history().Ensure(ctx, s.key(), p.newest)
	s.revisions = history.Replace(s.revisions, newest)
	if err == nil {
		return nil
	}
	r.emit(s, warning(reasonFailedCreate), "failed to keep the revision: %v", err)
	status := s.set.Status.DeepCopy()
	var taken *history.TakenError
	if errors.As(err, &taken) { // the next pass resolves another name
		status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	}
	return errors.Join(err, r.giveUp(ctx, s, status, err))
}

func (r *Reconciler) history() history.Writer {
	return history.Writer{Client: r.api.Client, Live: r.api.Live, Writes: r.revisionWrites}
}

// trim deletes revisions that no pod has and that are beyond the limit, and names of pods to delete that are gone.
func (r *Reconciler) trim(ctx context.Context, s *snapshot, p *plan) error {
	named := s.set.Spec.ScaleStrategy.PodsToDelete
	live, there := map[string]bool{p.current: true, p.update: true}, map[string]bool{}
	for _, pod := range p.pass.Pods() {
		live[pod.Labels[pub.PodRevisionLabelKey]] = true
		if len(named) > 0 {
			there[pod.Name] = true
		}
	}
	if err := r.history().Delete(ctx, s.key(), revision.Trim(s.revisions, slices.Sorted(maps.Keys(live)), *s.set.Spec.RevisionHistoryLimit)); err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(named), func(name string) bool { return !there[name] })
	if len(kept) == len(named) {
		return nil
	}
	const path = "/spec/scaleStrategy/podsToDelete"
	w := write.JSON(s.untyped(), write.Main, write.Test(path, named), write.Replace(path, kept))
	if _, err := runtimeclient.Send(ctx, r.api.Client, w); err != nil && !write.IsOutdated(err) {
		return fmt.Errorf("trim spec.scaleStrategy.podsToDelete: %w", err)
	}
	return nil
}

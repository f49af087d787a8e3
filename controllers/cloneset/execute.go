package cloneset

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// execute sends the writes of the pass.
func (r *Reconciler) execute(ctx context.Context, s *snapshot, p *plan) {
	if p.Runs(&s.Observation) {
		r.emitLimit(s, p)
		if len(p.Pass.Creations()) == 0 && len(s.known.pending) > 0 {
			r.memory.Note(s.Key(), func(k *knowledge) { k.pending = nil })
			p.After.In(time.Millisecond) // their claims are not needed any more
		}
	}
	var created sync.Map
	r.kit.Execute(ctx, &s.Observation, p.Plan, func(w *workload.Write, err error) {
		if w.Action == workload.ActionCreate && w.Object == w.Pod && (err == nil || apierrors.IsAlreadyExists(err)) { // else the name is another's
			created.Store(w.Pod.Labels[kruise.CloneSetInstanceIDKey], true)
		}
	})
	if len(p.ids) == 0 {
		return
	}
	r.memory.Note(s.Key(), func(k *knowledge) {
		k.pending = slices.DeleteFunc(slices.Concat(s.known.pending, p.ids), func(id string) bool {
			_, exists := created.Load(id)
			return exists
		})
		slices.Sort(k.pending)
		k.pending = slices.Compact(k.pending)
	})
}

// trim deletes revisions that no pod has and that are beyond the limit, and names of pods to delete that are gone.
func (r *Reconciler) trim(ctx context.Context, s *snapshot, p *plan) error {
	if err := r.kit.Trim(ctx, &s.Observation, p.Plan, *s.set.Spec.RevisionHistoryLimit); err != nil {
		return err
	}
	named, exists := s.set.Spec.ScaleStrategy.PodsToDelete, map[string]bool{}
	for _, pod := range p.Pass.Pods() {
		exists[pod.Name] = true
	}
	kept := slices.DeleteFunc(slices.Clone(named), func(name string) bool { return !exists[name] })
	if len(kept) == len(named) {
		return nil
	}
	const path = "/spec/scaleStrategy/podsToDelete"
	w := write.JSON(stored.Kind{GVK: gvk()}.Named(s.Key()), write.Main, write.Test(path, named), write.Replace(path, kept))
	if _, err := runtimeclient.Send(ctx, r.kit.Client, w); err != nil && !write.IsOutdated(err) {
		return fmt.Errorf("trim spec.scaleStrategy.podsToDelete: %w", err)
	}
	return nil
}

package cloneset

import (
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// parts are what the pass has beside the revision and the pods.
func (o Options) parts(s *snapshot, p *plan) workloads.Parts {
	return workloads.Parts{
		PreDownload: func() predownload.Rollout { return p.preDownload(s, o) },
		Report: func() (workloads.Report, error) {
			return reporter().Report(&s.Observation, p.Plan, p.status(s))
		},
		Limit: *s.set.Spec.RevisionHistoryLimit,
		Last:  func() []*write.Write { return p.trimNames(s) }, Answered: p.created.answered,
	}
}

// trimNames returns the write that removes names of pods to delete that are gone.
func (p *plan) trimNames(s *snapshot) []*write.Write {
	named, exists := s.set.Spec.ScaleStrategy.PodsToDelete, map[string]bool{}
	for _, pod := range p.Pass.Pods() {
		exists[pod.Name] = true
	}
	kept := slices.DeleteFunc(slices.Clone(named), func(name string) bool { return !exists[name] })
	if len(kept) == len(named) {
		return nil
	}
	const path = "/spec/scaleStrategy/podsToDelete"
	set := stored.Kind{GVK: gvk()}.Named(s.Key())
	return []*write.Write{write.JSON(set, write.Main, write.Test(path, named), write.Replace(path, kept))}
}

// creation is what became of the creations of a pass.
type creation struct {
	// existing are the ids of pods that exist now.
	existing sync.Map
}

// answered notes the pods that exist now. A pod of the same name may be another owner's: its id is given up.
func (c *creation) answered(w *workload.Write, err error) {
	created := w.Action == workload.ActionCreate && w.Object == w.Pod
	if created && (err == nil || apierrors.IsAlreadyExists(err)) {
		c.existing.Store(w.Pod.Labels[kruise.CloneSetInstanceIDKey], true)
	}
}

// remember keeps the ids of pods whose creation was planned and has not succeeded.
func (r *Reconciler) remember(s *snapshot, p *plan) {
	pending, changed := p.pending(s)
	if changed {
		r.memory.Note(s.Key(), func(k *knowledge) { k.pending = pending })
	}
}

// pending returns the ids of pods whose creation was planned and has not succeeded, and whether they are others than
// before. Where no pod is missing any more, their claims are not needed.
func (p *plan) pending(s *snapshot) (ids []string, changed bool) {
	switch {
	case !p.Runs(&s.Observation):
		return nil, false
	case p.creations == 0:
		return nil, len(s.known.pending) > 0
	case len(p.ids) == 0:
		return nil, false
	}
	ids = slices.DeleteFunc(slices.Concat(s.known.pending, p.ids), func(id string) bool {
		_, exists := p.created.existing.Load(id)
		return exists
	})
	slices.Sort(ids)
	return slices.Compact(ids), true
}

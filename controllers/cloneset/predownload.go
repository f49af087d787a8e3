package cloneset

import (
	"context"
	"math"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/scale"
)

// preDownload has the nodes pull the images of the update revision. A failure here stops nothing else.
func (r *Reconciler) preDownload(ctx context.Context, s *snapshot, p *plan) error {
	if !r.dependents.PullJobs || s.set.DeletionTimestamp != nil {
		return nil
	}
	jobs, err := predownload.Plan(p.preDownload(s, r.options))
	if err != nil {
		return err
	}
	w := r.dependents.PreDownload(func(job *v1beta1.ImagePullJob, err error) { r.emitPullJob(s, job, err) })
	fresh, err := w.Execute(ctx, s.key(), jobs)
	s.Revisions = history.Replace(s.Revisions, fresh)
	return err
}

// preDownload is the rollout of the set.
func (p *plan) preDownload(s *snapshot, o Options) predownload.Rollout {
	policy := p.rolling.PodUpdatePolicy
	only := policy == v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	r := predownload.Rollout{
		Namespace: s.set.Namespace, Owner: s.controllerRef(), Selector: s.set.Spec.Selector, Replicas: *s.set.Spec.Replicas,
		Current: history.Find(s.Revisions, p.current), Update: history.Find(s.Revisions, p.update), To: &s.set.Spec.Template, Jobs: s.Jobs,
		Over:      p.current == p.update,
		Recreates: policy != v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType && !only,
		Strategy:  ptr.Deref(p.rolling.InPlaceUpdateStrategy, kruise.InPlaceUpdateStrategy{}), Policy: o.policy(),
	}
	if s.set.Status.UpdateRevision == p.update {
		r.UpdatedReady = s.set.Status.UpdatedReadyReplicas
	}
	if o.RecreateOnClaimChange && !only && r.Current != nil && r.Update != nil {
		x, ok := r.Current.Annotations[kruise.CloneSetVolumeClaimTemplateHashKey]
		y, also := r.Update.Annotations[kruise.CloneSetVolumeClaimTemplateHashKey]
		r.Recreates = r.Recreates || ok && also && x != y
	}
	if p.limits.Partition == 0 && p.rolling.MaxUnavailable != nil {
		n, err := scale.AmountOr(p.rolling.MaxUnavailable, math.MaxInt32, r.Replicas, scale.RoundDown)
		r.AtOnce = err == nil && n >= r.Replicas
	}
	return r
}

package statefulset

import (
	"math"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/scale"
)

// preDownload is the rollout of the set, for which nodes pull images ahead.
func (p *plan) preDownload(s *snapshot, o Options) predownload.Rollout {
	r := s.Rollout(p.Plan)
	r.Selector, r.Replicas, r.To = s.set.Spec.Selector, *s.set.Spec.Replicas, &s.set.Spec.Template
	policy := p.rolling.PodUpdatePolicy
	inPlace := policy == v1beta1.InPlaceIfPossiblePodUpdateStrategyType ||
		policy == v1beta1.InPlaceOnlyPodUpdateStrategyType
	r.Recreates = !inPlace || s.set.Spec.UpdateStrategy.RollingUpdate == nil
	// the reference reads nothing but annotations
	r.Strategy = predownload.Annotated(p.rolling.InPlaceUpdateStrategy, s.set.Annotations, r.Replicas)
	r.Policy = workloads.Policy(o.Installed)
	if s.set.Status.UpdateRevision == p.Update {
		r.UpdatedReady = s.set.Status.UpdatedReadyReplicas
	}
	if p.limits.Partition == 0 && isParallel(s.set) && p.rolling.MaxUnavailable != nil {
		n, err := scale.AmountOr(p.rolling.MaxUnavailable, math.MaxInt32, r.Replicas, scale.RoundDown)
		r.AtOnce = err == nil && n >= r.Replicas
	}
	return r
}

package cloneset

import (
	"math"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/scale"
)

// preDownload is the rollout of the set, for which nodes pull images ahead.
func (p *plan) preDownload(s *snapshot, o Options) predownload.Rollout {
	policy := p.rolling.PodUpdatePolicy
	only := policy == v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	r := s.Rollout(p.Plan)
	r.Selector, r.Replicas, r.To = s.set.Spec.Selector, *s.set.Spec.Replicas, &s.set.Spec.Template
	r.Recreates = policy != v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType && !only
	r.Strategy, r.Policy = ptr.Deref(p.rolling.InPlaceUpdateStrategy, kruise.InPlaceUpdateStrategy{}), o.policy()
	if s.set.Status.UpdateRevision == p.Update {
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

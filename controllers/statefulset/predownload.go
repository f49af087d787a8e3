package statefulset

import (
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/scale"
)

// preDownload is the rollout of the set, for which nodes pull images ahead.
func (p *plan) preDownload(s *snapshot, o Options) predownload.Rollout {
	r := s.Rollout(p.Plan)
	r.Selector, r.Replicas, r.To = s.set.Spec.Selector, *s.set.Spec.Replicas, &s.set.Spec.Template
	policy := p.rolling.PodUpdatePolicy
	inPlace := policy == v1beta1.InPlaceIfPossiblePodUpdateStrategyType || policy == v1beta1.InPlaceOnlyPodUpdateStrategyType
	r.Recreates = !inPlace || s.set.Spec.UpdateStrategy.RollingUpdate == nil
	r.Strategy, r.Policy = annotated(s.set), o.policy()
	if s.set.Status.UpdateRevision == p.Update {
		r.UpdatedReady = s.set.Status.UpdatedReadyReplicas
	}
	if p.limits.Partition == 0 && isParallel(s.set) && p.rolling.MaxUnavailable != nil {
		n, err := scale.AmountOr(p.rolling.MaxUnavailable, math.MaxInt32, r.Replicas, scale.RoundDown)
		r.AtOnce = err == nil && n >= r.Replicas
	}
	return r
}

// annotated is the tuning of the pre-download in the annotations of a set, which the reference reads instead of the fields. The fields are
// read where an annotation is missing. What cannot be parsed is as if it were not set.
func annotated(set *v1beta1.StatefulSet) kruise.InPlaceUpdateStrategy {
	var tuning kruise.InPlaceUpdateStrategy
	if u := set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.InPlaceUpdateStrategy != nil {
		tuning = *u.InPlaceUpdateStrategy
	}
	if n, err := strconv.ParseInt(set.Annotations[kruise.ImagePreDownloadParallelismKey], 10, 32); err == nil && n > 0 {
		tuning.ImagePreDownloadParallelism = ptr.To(intstr.FromInt32(int32(n)))
	}
	if n, err := strconv.ParseInt(set.Annotations[kruise.ImagePreDownloadTimeoutSecondsKey], 10, 32); err == nil && n > 0 {
		tuning.ImagePreDownloadTimeoutSeconds = ptr.To(int32(n))
	}
	if text := set.Annotations[kruise.ImagePreDownloadMinUpdatedReadyPodsKey]; text != "" {
		amount := intstr.Parse(text)
		if n, err := scale.AmountOr(&amount, 0, *set.Spec.Replicas, scale.RoundUp); err == nil {
			tuning.ImagePreDownloadMinUpdatedReadyPods = ptr.To(n)
		}
	}
	return tuning
}

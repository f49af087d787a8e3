package forecast

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/scale"
)

func cloneSets() *kind {
	return &kind{
		name: "CloneSet",
		facts: func(o client.Object) facts {
			set, ok := o.(*v1beta1.CloneSet)
			if !ok {
				return facts{}
			}
			return cloneSetFacts(set)
		},
		reconciler: func(_ context.Context, s *simulation) (reconcile.Reconciler, error) {
			ids := 0
			return cloneset.New(s.server, cloneset.Options{
				Live: s.server, Recorder: s.server, Now: s.now, Installed: s.options.Installed,
				Ask: s.guard.ask, Explain: s.explain,
				NewID: func() string {
					ids++
					return fmt.Sprintf("new%d", ids)
				},
			})
		},
	}
}

func cloneSetFacts(set *v1beta1.CloneSet) facts {
	rolling := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateCloneSetStrategy{})
	f := facts{
		pods: set.Spec.Selector, claims: len(set.Spec.VolumeClaimTemplates) > 0,
		nodes:    len(set.Spec.Template.Spec.TopologySpreadConstraints) > 0,
		template: &set.Spec.Template, minReady: set.Spec.MinReadySeconds, hooks: set.Spec.Lifecycle,
		current: set.Status.CurrentRevision, update: set.Status.UpdateRevision,
		recreates: rolling.PodUpdatePolicy != v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType &&
			rolling.PodUpdatePolicy != v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType,
	}
	if rolling.InPlaceUpdateStrategy != nil {
		f.grace = rolling.InPlaceUpdateStrategy.GracePeriodSeconds
	}
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	b := Bounds{Replicas: replicas}
	b.Partition, _ = scale.Partition(rolling.Partition, replicas)
	if b.MaxSurge = amount(rolling.MaxSurge, "0", replicas, scale.RoundUp); rolling.Paused {
		b.MaxSurge = 0
	}
	rounding := scale.RoundUp
	if b.MaxSurge > 0 || set.Spec.UpdateStrategy.RollingUpdate == nil {
		rounding = scale.RoundDown
	}
	b.MaxUnavailable = amount(rolling.MaxUnavailable, "20%", replicas, rounding)
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		b.MaxUnavailable = max(b.MaxUnavailable, 1)
	}
	b.MinAvailable = max(replicas-b.MaxUnavailable, 0)
	f.bounds = b
	return f
}

// amount resolves a bound. One that is not set, or that cannot be parsed, is the default.
func amount(v *intstr.IntOrString, fallback string, total int32, rounding scale.Rounding) int32 {
	without, _ := scale.Amount(intstr.Parse(fallback), total, rounding)
	n, err := scale.AmountOr(v, without, total, rounding)
	if err != nil {
		return max(without, 0)
	}
	return max(n, 0)
}

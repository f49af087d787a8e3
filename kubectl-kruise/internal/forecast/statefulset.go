package forecast

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/scale"
)

func statefulSets() *kind {
	return &kind{
		name:  "StatefulSet",
		place: func(pod *corev1.Pod) string { return pod.Name },
		facts: func(o client.Object) facts {
			set, is := o.(*v1beta1.StatefulSet)
			if !is {
				return facts{}
			}
			return statefulSetFacts(set)
		},
		reconciler: func(ctx context.Context, s *simulation) (reconcile.Reconciler, error) {
			if err := workloads.IndexOrphans(ctx, s.server, "StatefulSet", func(pod string) (string, bool) {
				set, _, ok := ordinals.Split(pod)
				return set, ok
			}); err != nil {
				return nil, err
			}
			return statefulset.New(s.server, statefulset.Options{
				Live: s.server, Recorder: s.server, Now: s.now, Installed: s.options.Installed,
				Ask: s.guard.ask, Explain: s.explain,
			})
		},
	}
}

func statefulSetFacts(set *v1beta1.StatefulSet) facts {
	rolling := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateStatefulSetStrategy{})
	f := facts{
		pods: set.Spec.Selector, claims: len(set.Spec.VolumeClaimTemplates) > 0,
		template: &set.Spec.Template, minReady: ptr.Deref(rolling.MinReadySeconds, 0), hooks: set.Spec.Lifecycle,
		current: set.Status.CurrentRevision, update: set.Status.UpdateRevision,
		recreates: rolling.PodUpdatePolicy != v1beta1.InPlaceIfPossiblePodUpdateStrategyType &&
			rolling.PodUpdatePolicy != v1beta1.InPlaceOnlyPodUpdateStrategyType,
	}
	if rolling.InPlaceUpdateStrategy != nil {
		f.grace = rolling.InPlaceUpdateStrategy.GracePeriodSeconds
	}
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	b := Bounds{Replicas: replicas, MaxUnavailable: 1, Partition: min(max(ptr.Deref(rolling.Partition, 0), 0), replicas)}
	if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		b.MaxUnavailable = max(amount(rolling.MaxUnavailable, "1", replicas, scale.RoundDown), 1)
	}
	b.MinAvailable = max(replicas-b.MaxUnavailable, 0)
	f.bounds = b
	return f
}

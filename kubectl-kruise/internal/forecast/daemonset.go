package forecast

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/scale"
)

func daemonSets() *kind {
	return &kind{
		name:  "DaemonSet",
		place: func(pod *corev1.Pod) string { return pod.Spec.NodeName },
		facts: func(o client.Object) facts {
			set, ok := o.(*v1beta1.DaemonSet)
			if !ok {
				return facts{}
			}
			return daemonSetFacts(set)
		},
		reconciler: func(ctx context.Context, s *simulation) (reconcile.Reconciler, error) {
			if err := workloads.IndexOrphans(ctx, s.server, "DaemonSet", workloads.OwnerOfPod); err != nil {
				return nil, err
			}
			return daemonset.New(s.server, daemonset.Options{
				Live: s.server, Recorder: s.server, Now: s.now, Installed: s.options.Installed,
				Ask: s.guard.ask, Explain: s.explain,
			})
		},
	}
}

func daemonSetFacts(set *v1beta1.DaemonSet) facts {
	rolling := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateDaemonSet{})
	f := facts{
		pods: set.Spec.Selector, nodes: true,
		template: &set.Spec.Template, minReady: set.Spec.MinReadySeconds, update: set.Status.UpdateRevision,
		recreates: rolling.Type != v1beta1.InplaceRollingUpdateType,
	}
	if set.Spec.Lifecycle != nil {
		f.hooks = &kruise.Lifecycle{PreDelete: set.Spec.Lifecycle.PreDelete}
	}
	desired := set.Status.DesiredNumberScheduled
	b := Bounds{
		Replicas:  desired,
		MaxSurge:  amount(rolling.MaxSurge, "0", desired, scale.RoundUp),
		Partition: min(amount(rolling.Partition, "0", desired, scale.RoundDown), desired),
	}
	if b.MaxUnavailable = amount(rolling.MaxUnavailable, "0", desired, scale.RoundUp); b.MaxSurge == 0 {
		b.MaxUnavailable = max(b.MaxUnavailable, 1)
	}
	b.MinAvailable = max(desired-b.MaxUnavailable, 0)
	f.bounds = b
	if rolling.Selector != nil {
		if selector, err := metav1.LabelSelectorAsSelector(rolling.Selector); err == nil {
			f.selector = selector
		}
	}
	return f
}

package migrate

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/inplace"
)

// CloneSetOf returns the CloneSet that does what a Deployment does, without pods.
func CloneSetOf(d *appsv1.Deployment, name string) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metadata(d.ObjectMeta, name)}
	set.Spec = v1beta1.CloneSetSpec{
		Replicas: ptr.To[int32](0), Selector: d.Spec.Selector, Template: d.Spec.Template,
		RevisionHistoryLimit: d.Spec.RevisionHistoryLimit, MinReadySeconds: d.Spec.MinReadySeconds,
		UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
			Type: v1beta1.RollingUpdateCloneSetUpdateStrategyType,
			RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: v1beta1.RecreateCloneSetPodUpdateStrategyType, Paused: d.Spec.Paused,
			},
		},
	}
	if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = rolling.MaxUnavailable
		set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = rolling.MaxSurge
	}
	return set
}

// Adopting returns the CloneSet that takes the pods of a Deployment over. Until it has them it updates no pod, and
// creates none, since its scale-out may leave none unavailable.
func Adopting(d *appsv1.Deployment, name string) *v1beta1.CloneSet {
	set := CloneSetOf(d, name)
	set.Spec.Replicas = ptr.To(ptr.Deref(d.Spec.Replicas, 1))
	set.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.Paused, rolling.PodUpdatePolicy = true, v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType
	return set
}

// StatefulSetOf returns the StatefulSet of apps.kruise.io that takes the pods of one of apps over. It updates no pod
// and retains all claims until the migration is complete. The ordinals before the first one are reserved:
// spec.ordinals needs a feature gate, without which the pods would be surplus.
func StatefulSetOf(s *appsv1.StatefulSet) *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{ObjectMeta: metadata(s.ObjectMeta, s.Name)}
	set.Spec = v1beta1.StatefulSetSpec{
		Replicas: s.Spec.Replicas, Selector: s.Spec.Selector, Template: *s.Spec.Template.DeepCopy(),
		ServiceName: s.Spec.ServiceName, VolumeClaimTemplates: s.Spec.VolumeClaimTemplates,
		PodManagementPolicy: s.Spec.PodManagementPolicy, RevisionHistoryLimit: s.Spec.RevisionHistoryLimit,
		UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{Type: s.Spec.UpdateStrategy.Type},
	}
	if o := s.Spec.Ordinals; o != nil && o.Start > 0 {
		set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromString(fmt.Sprintf("0-%d", o.Start-1))}
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return set
	}
	to := &v1beta1.RollingUpdateStatefulSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType, Paused: true,
	}
	set.Spec.UpdateStrategy.RollingUpdate = to
	inplace.EnsureReadinessGate(&set.Spec.Template.Spec, nil) // which updates in place require of the template
	if s.Spec.MinReadySeconds > 0 {
		to.MinReadySeconds = ptr.To(s.Spec.MinReadySeconds)
	}
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		to.Partition, to.MaxUnavailable = rolling.Partition, rolling.MaxUnavailable
	}
	return set
}

// metadata returns the labels and annotations of a workload, without those that its controller and kubectl write.
func metadata(from metav1.ObjectMeta, name string) metav1.ObjectMeta {
	to := metav1.ObjectMeta{Name: name, Namespace: from.Namespace, Labels: from.Labels, Annotations: map[string]string{}}
	maps.Copy(to.Annotations, from.Annotations)
	delete(to.Annotations, corev1.LastAppliedConfigAnnotation)
	delete(to.Annotations, "deployment.kubernetes.io/revision")
	return to
}

// Moving is how far a move is.
type Moving struct {
	// Source and Target are the replicas that the workloads want now, and want in the end.
	Source, Target, FinalSource, FinalTarget int32
	// Available is how many pods of the target are available.
	Available int32
	// Surge is by how many pods the target may run ahead.
	Surge int32
}

// Action is what to do next: nothing where both numbers are those of now.
type Action struct {
	Source, Target int32
	Done           bool
}

// Move returns what to do next. The target grows first, and the source shrinks once the new pods are available.
func Move(m Moving) Action {
	a := Action{Source: m.Source, Target: m.Target}
	total := m.FinalSource + m.FinalTarget
	switch {
	case m.Available < m.Target: // wait
	case m.Source > m.FinalSource && m.Source+m.Target > total:
		a.Source = max(total-m.Target, m.FinalSource)
	case m.Target < m.FinalTarget:
		a.Target = min(m.Target+max(m.Surge, 1), m.FinalTarget)
	default:
		a.Done = true
	}
	return a
}

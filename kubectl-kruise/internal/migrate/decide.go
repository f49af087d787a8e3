package migrate

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// fromKey is the annotation of a workload that takes pods over, with the name of their former workload.
const fromKey = "kruisekit.dev/migrating-from"

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
	set.Annotations[fromKey] = d.Name
	set.Spec.Replicas = ptr.To(ptr.Deref(d.Spec.Replicas, 1))
	set.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	rolling.Paused, rolling.PodUpdatePolicy = true, v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType
	return set
}

// StatefulSetOf returns the StatefulSet of apps.kruise.io that takes the pods of one of apps over. It updates no pod
// until it has them all.
func StatefulSetOf(s *appsv1.StatefulSet) *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{ObjectMeta: metadata(s.ObjectMeta, s.Name)}
	set.Annotations[fromKey] = s.Name
	set.Spec = v1beta1.StatefulSetSpec{
		Replicas: s.Spec.Replicas, Selector: s.Spec.Selector, Template: s.Spec.Template, ServiceName: s.Spec.ServiceName,
		VolumeClaimTemplates: s.Spec.VolumeClaimTemplates, PodManagementPolicy: s.Spec.PodManagementPolicy,
		RevisionHistoryLimit: s.Spec.RevisionHistoryLimit,
		UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
			Type: appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{
				PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType, Paused: true,
			},
		},
	}
	inplace.EnsureReadinessGate(&set.Spec.Template.Spec, nil) // which updates in place require of the template
	if s.Spec.MinReadySeconds > 0 {
		set.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds = ptr.To(s.Spec.MinReadySeconds)
	}
	if s.Spec.Ordinals != nil {
		set.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: s.Spec.Ordinals.Start}
	}
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = rolling.Partition
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = rolling.MaxUnavailable
	}
	if policy := s.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: v1beta1.PersistentVolumeClaimRetentionPolicyType(policy.WhenDeleted),
			WhenScaled:  v1beta1.PersistentVolumeClaimRetentionPolicyType(policy.WhenScaled),
		}
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

// Adopt returns the operations that make an orphaned pod one of a CloneSet, at its update revision: none for a pod that
// it controls already.
func Adopt(pod *corev1.Pod, set *v1beta1.CloneSet, apiVersion, id string) ([]write.Op, error) {
	if metav1.IsControlledBy(pod, set) {
		return nil, nil
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return nil, fmt.Errorf("pod %s belongs to %s %s", pod.Name, owner.Kind, owner.Name)
	}
	owners := append(slices.Clone(pod.OwnerReferences), metav1.OwnerReference{
		APIVersion: apiVersion, Kind: "CloneSet", Name: set.Name, UID: set.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	})
	state := string(kruise.LifecycleStateNormal)
	ops := append(write.TestUID(pod), write.SetLabels(pod, map[string]*string{
		kruise.PodRevisionLabelKey: &set.Status.UpdateRevision, kruise.CloneSetInstanceIDKey: &id,
		kruise.LifecycleStateKey: &state,
	})...)
	return append(ops, write.Add("/metadata/ownerReferences", owners)), nil
}

// Relabel returns the operations that give a pod the revision that its workload makes of the same template: none where
// the pod has it.
func Relabel(pod *corev1.Pod, revision string) []write.Op {
	if pod.Labels[kruise.PodRevisionLabelKey] == revision {
		return nil
	}
	return append(write.TestUID(pod), write.SetLabels(pod, map[string]*string{kruise.PodRevisionLabelKey: &revision})...)
}

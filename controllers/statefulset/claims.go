package statefulset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// claimsOf are the claims of the pods of a set, before any is read. Unknown policies retain.
func (o Options) claimsOf(set *v1beta1.StatefulSet) claims.Named {
	named := claims.Named{
		Namespace: set.Namespace,
		Workload:  set.Name,
		Templates: set.Spec.VolumeClaimTemplates,
		Labels:    set.Spec.Selector.MatchLabels,
	}
	if o.IgnoreRetention {
		return named
	}
	named.Retention = &claims.Retention{
		Workload: metav1.OwnerReference{APIVersion: gvk().GroupVersion().String(), Kind: kind, Name: set.Name, UID: set.UID},
	}
	if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		named.Retention.WithWorkload = policy.WhenDeleted == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
		named.Retention.WithPod = policy.WhenScaled == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return named
}

// expands reports whether updates of pods expand their claims.
func (o Options) expands(set *v1beta1.StatefulSet) bool {
	return o.ExpandClaims &&
		set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

// firstWrites release and adopt pods, repair what identifies a pod, and create claims that pods wait for.
func (s *snapshot) firstWrites() []write.Write {
	writes := s.Ownership()
	if s.IsDeleted() {
		return nil
	}
	for _, pod := range s.Active {
		ordinal, _ := s.ordinal(pod.Name)
		if !s.window.Contains(ordinal) {
			continue
		}
		if pod.Labels[appsv1.StatefulSetPodNameLabel] != pod.Name {
			path := write.Pointer("metadata", "labels", appsv1.StatefulSetPodNameLabel)
			writes = append(writes,
				*write.JSON(pod, write.Main, write.Test("/metadata/uid", pod.UID), write.Add(path, pod.Name)))
		}
		if pod.Status.Phase == corev1.PodPending {
			for _, claim := range s.claims.Missing(ordinal) {
				writes = append(writes, write.Write{Verb: write.Create, Object: claim})
			}
		}
	}
	return writes
}

// retain returns what is written before a pod is deleted: where the set does not want its ordinal any more, and the
// policy deletes the claims then, they refer to the pod, with which the garbage collector deletes them. The claims of a
// wanted ordinal outlast the pod.
func (s *snapshot) retain(pod *corev1.Pod) []write.Write {
	ordinal, ok := s.ordinal(pod.Name)
	return s.claims.Refer(pod, ordinal, !ok || !s.window.Contains(ordinal))
}

// compareClaims marks the instances that update for their claims: those that lack one, and with expand those whose
// claims are to grow.
func (s *snapshot) compareClaims(p *plan, in *workload.Input, expand bool) {
	for k := range in.Instances {
		i := &in.Instances[k]
		pod := i.Pods[0].Pod
		ordinal, _ := s.ordinal(pod.Name)
		rank, wanted := s.window.Rank(ordinal)
		updates := wanted && rank >= p.limits.Partition
		i.MarkedForDeletion = updates && !claims.Mounts(&pod.Spec, s.set.Spec.VolumeClaimTemplates)
		if !expand {
			continue
		}
		fit := s.claims.Fit(pod, ordinal, s.Now)
		i.Outdated, i.Impaired = i.Outdated || fit.Outdated, i.Impaired || fit.Grows
		if updates {
			i.MarkedForDeletion = i.MarkedForDeletion || fit.Remounts
			p.After.In(fit.RemountsAfter)
		}
	}
}

// volumeClaims counts the claims of pods in slots, by template.
func (s *snapshot) volumeClaims() []v1beta1.VolumeClaimStatus {
	if templates := s.set.Spec.VolumeClaimTemplates; len(templates) == 0 || s.IsDeleted() {
		return s.set.Status.VolumeClaims[:min(len(templates), len(s.set.Status.VolumeClaims))]
	}
	return s.claims.Status(s.ordinals(slices.Concat(s.Active, s.Inactive), s.window.Contains))
}

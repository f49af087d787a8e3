package statefulset

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// claimsOf are the claims of an ordinal that exist with their templates, in the order of these.
func (s *snapshot) claimsOf(ordinal int32) iter.Seq2[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim] {
	return func(yield func(claim, template *corev1.PersistentVolumeClaim) bool) {
		for i := range s.set.Spec.VolumeClaimTemplates {
			template := &s.set.Spec.VolumeClaimTemplates[i]
			claim := s.claims[claims.Name(template.Name, s.set.Name, strconv.Itoa(int(ordinal)))]
			if claim != nil && !yield(claim, template) {
				return
			}
		}
	}
}

// firstWrites release and adopt pods, repair what identifies a pod, and bring the claims of wanted pods to what they are to be.
func (o Options) firstWrites(s *snapshot) []write.Write {
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
			writes = append(writes, *write.JSON(pod, write.Main, write.Test("/metadata/uid", pod.UID), write.Add(path, pod.Name)))
		}
		if pod.Status.Phase == corev1.PodPending {
			for _, claim := range o.missingClaims(s, ordinal) {
				writes = append(writes, write.Write{Verb: write.Create, Object: claim})
			}
		}
		writes = append(writes, o.refer(s, pod, false)...)
	}
	return writes
}

// handOver returns what is written before a pod is deleted: where the set does not want its ordinal any more, and the policy deletes the
// claims then, they refer to the pod, with which the garbage collector deletes them.
func (o Options) handOver(s *snapshot, pod *corev1.Pod) []write.Write {
	if s.wanted(pod.Name) {
		return nil
	}
	return o.refer(s, pod, true)
}

// refer returns the patches that give the claims of a pod the owners of the retention policy. out means that the ordinal is not wanted.
func (o Options) refer(s *snapshot, pod *corev1.Pod, out bool) []write.Write {
	if o.IgnoreRetention {
		return nil
	}
	var writes []write.Write
	ordinal, _ := s.ordinal(pod.Name)
	wantsSet, wantsPod := o.owners(s.set, out)
	for claim := range s.claimsOf(ordinal) {
		writes = append(writes, claims.Own(claim, claims.Owner{Ref: s.setRef(), Owns: wantsSet}, claims.Owner{Ref: claims.PodRef(pod), Owns: wantsPod})...)
	}
	return writes
}

// owners reports whether claims refer to the set, and to their pod. Unknown policies retain.
func (o Options) owners(set *v1beta1.StatefulSet, out bool) (wantsSet, wantsPod bool) {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	if o.IgnoreRetention || policy == nil {
		return false, false
	}
	wantsPod = out && o.deletesScaled(set)
	return policy.WhenDeleted == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType && !wantsPod, wantsPod
}

// deletesScaled reports whether the claims of a pod are deleted with it when its ordinal is not wanted any more.
func (o Options) deletesScaled(set *v1beta1.StatefulSet) bool {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	return !o.IgnoreRetention && policy != nil && policy.WhenScaled == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
}

func (s *snapshot) setRef() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: gvk().GroupVersion().String(), Kind: kind, Name: s.set.Name, UID: s.set.UID}
}

// expands reports whether updates of pods expand their claims.
func (o Options) expands(set *v1beta1.StatefulSet) bool {
	return o.ExpandClaims && set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

// compareClaims marks the instances whose claims are smaller than the templates, or are growing, and the pods that must mount volumes again.
func (s *snapshot) compareClaims(p *plan, in *workload.Input) {
	for k := range in.Instances {
		i := &in.Instances[k]
		pod := i.Pods[0].Pod
		ordinal, _ := s.ordinal(pod.Name)
		for claim, template := range s.claimsOf(ordinal) {
			if claim.DeletionTimestamp != nil {
				continue
			}
			fit := claims.Compare(claim, template)
			if rank, wanted := s.window.Rank(ordinal); wanted && rank >= p.limits.Partition {
				remounts, after := fit.NeedsRemount(pod, s.Now)
				i.MarkedForDeletion = i.MarkedForDeletion || remounts
				p.After.In(after)
			}
			i.Outdated = i.Outdated || !fit.Complete()
			i.Impaired = i.Impaired || fit.Alike && !fit.Grown
		}
	}
	in.Ahead = s.expansion
}

// expansion returns what comes before the update of a pod: its claims grow.
func (s *snapshot) expansion(pod *corev1.Pod) workload.Ahead {
	var ahead workload.Ahead
	ordinal, _ := s.ordinal(pod.Name)
	for claim, template := range s.claimsOf(ordinal) {
		fit := claims.Compare(claim, template)
		if claim.DeletionTimestamp != nil || fit.Complete() {
			continue
		}
		ahead.Wait = fmt.Sprintf("the volume of claim %s is to grow", claim.Name)
		if fit.Compatible {
			continue
		}
		expand, err := claims.Expand(claim, template, s.set.Name, s.classes)
		if err != nil {
			return workload.Ahead{Err: err}
		}
		ahead.Writes = append(ahead.Writes, expand)
	}
	return ahead
}

// observeClasses reads the storage classes of claims that are to grow.
func (r *Reconciler) observeClasses(ctx context.Context, s *snapshot) error {
	if !r.options.expands(s.set) {
		return nil
	}
	s.classes = claims.Classes{}
	for _, pod := range s.Active {
		ordinal, _ := s.ordinal(pod.Name)
		for claim, template := range s.claimsOf(ordinal) {
			name := ptr.Deref(claim.Spec.StorageClassName, "")
			if _, known := s.classes[name]; known || name == "" || claims.Compare(claim, template).Compatible {
				continue
			}
			class, err := stored.Find[storagev1.StorageClass](ctx, r.kit.Client, types.NamespacedName{Name: name})
			if err != nil {
				return err
			}
			s.classes[name] = class
		}
	}
	return nil
}

// volumeClaims counts the claims of pods in slots, by template.
func (s *snapshot) volumeClaims() []v1beta1.VolumeClaimStatus {
	templates := s.set.Spec.VolumeClaimTemplates
	if len(templates) == 0 || s.IsDeleted() {
		return s.set.Status.VolumeClaims[:min(len(templates), len(s.set.Status.VolumeClaims))]
	}
	all := make([]v1beta1.VolumeClaimStatus, len(templates))
	for i := range templates {
		all[i].VolumeClaimName = templates[i].Name
		for _, pod := range slices.Concat(s.Active, s.Inactive) {
			ordinal, _ := s.ordinal(pod.Name)
			claim := s.claims[claims.Name(templates[i].Name, s.set.Name, strconv.Itoa(int(ordinal)))]
			if claim == nil || !s.window.Contains(ordinal) {
				continue
			}
			fit := claims.Compare(claim, &templates[i])
			if fit.Compatible {
				all[i].CompatibleReplicas++
			}
			if fit.Ready() {
				all[i].CompatibleReadyReplicas++
			}
		}
	}
	return all
}

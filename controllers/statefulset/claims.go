package statefulset

import (
	"iter"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/write"
)

// claimsOf are the claims of an ordinal that exist, in the order of their templates.
func (s *snapshot) claimsOf(ordinal int32) iter.Seq[*corev1.PersistentVolumeClaim] {
	return func(yield func(*corev1.PersistentVolumeClaim) bool) {
		for i := range s.set.Spec.VolumeClaimTemplates {
			claim := s.claims[claims.Name(s.set.Spec.VolumeClaimTemplates[i].Name, s.set.Name, strconv.Itoa(int(ordinal)))]
			if claim != nil && !yield(claim) {
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
// References to other owners stay.
func (o Options) refer(s *snapshot, pod *corev1.Pod, out bool) []write.Write {
	if o.IgnoreRetention {
		return nil
	}
	var writes []write.Write
	ordinal, _ := s.ordinal(pod.Name)
	wantsSet, wantsPod := o.owners(s.set, out)
	for claim := range s.claimsOf(ordinal) {
		if claim.DeletionTimestamp != nil {
			continue
		}
		var remove []types.UID
		var add []*metav1.OwnerReference
		for _, owner := range []struct {
			ref   *metav1.OwnerReference
			wants bool
		}{{s.setRef(), wantsSet}, {podRef(pod), wantsPod}} {
			has := slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == owner.ref.UID })
			switch {
			case has && !owner.wants:
				remove = append(remove, owner.ref.UID)
			case !has && owner.wants:
				add = append(add, owner.ref)
			}
		}
		if len(remove)+len(add) > 0 {
			writes = append(writes, owned.Refer(claim, remove, add...))
		}
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

func (s *snapshot) setRef() *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: gvk().GroupVersion().String(), Kind: kind, Name: s.set.Name, UID: s.set.UID}
}

func podRef(pod *corev1.Pod) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

func isPod(ref metav1.OwnerReference) bool {
	return ref.Kind == "Pod" && ref.APIVersion == corev1.SchemeGroupVersion.String()
}

// compatibility reports whether a claim is as large as its template asks for and alike otherwise, and whether its volume has that size.
func compatibility(claim, template *corev1.PersistentVolumeClaim) (compatible, ready bool) {
	has, wants := &claim.Spec, &template.Spec
	if has.StorageClassName != nil && wants.StorageClassName != nil && *has.StorageClassName != *wants.StorageClassName || !slices.Equal(has.AccessModes, wants.AccessModes) {
		return false, false
	}
	requested, wanted := has.Resources.Requests[corev1.ResourceStorage], wants.Resources.Requests[corev1.ResourceStorage]
	capacity := claim.Status.Capacity[corev1.ResourceStorage]
	compatible = requested.Cmp(wanted) >= 0
	return compatible, compatible && capacity.Cmp(requested) >= 0
}

// volumeClaims counts the claims of pods in slots, by template.
func (s *snapshot) volumeClaims() []v1beta1.VolumeClaimStatus {
	templates := s.set.Spec.VolumeClaimTemplates
	if len(templates) == 0 || s.set.DeletionTimestamp != nil {
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
			compatible, ready := compatibility(claim, &templates[i])
			if compatible {
				all[i].CompatibleReplicas++
			}
			if ready {
				all[i].CompatibleReadyReplicas++
			}
		}
	}
	return all
}

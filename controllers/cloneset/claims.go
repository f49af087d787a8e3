package cloneset

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// handOver returns the write by which a claim goes with a pod: the garbage collector deletes the claim with the pod,
// and no other pod gets its data.
func (s *snapshot) handOver(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) write.Write {
	owner := claims.PodRef(pod)
	owner.Controller = ptr.To(true)
	return owned.Release(claim, s.set.UID, &owner)
}

// idInName is the id of a pod whose label a user may have changed.
func (s *snapshot) idInName(pod *corev1.Pod) string {
	return strings.TrimPrefix(pod.Name, s.set.Name+"-")
}

// ownershipWrites release pods that the selector no longer matches, each in the pass after their claims were handed
// over: a claim without a pod would be deleted, or serve another pod. Where claims are not reused, those of a pod that
// goes are handed over, too, and those whose pod is gone are deleted. kept are the other claims.
func (s *snapshot) ownershipWrites() (writes []write.Write, kept []*corev1.PersistentVolumeClaim) {
	if len(s.Claims) == 0 {
		return s.Ownership(), nil
	}
	reuse := s.set.Spec.ScaleStrategy.EnablePVCReuse
	used, leaving := sets.New(s.known.pending...), map[string]*corev1.Pod{}
	for _, pod := range s.Active {
		used.Insert(pod.Labels[kruise.CloneSetInstanceIDKey], s.idInName(pod))
	}
	if !reuse {
		for _, pod := range s.Inactive {
			leaving[pod.Labels[kruise.CloneSetInstanceIDKey]] = pod
		}
	}
	for _, pod := range s.Unselected {
		leaving[pod.Labels[kruise.CloneSetInstanceIDKey]], leaving[s.idInName(pod)] = pod, pod
	}
	held := map[types.UID]bool{}
	for _, claim := range s.Claims {
		id := claim.Labels[kruise.CloneSetInstanceIDKey]
		switch pod := leaving[id]; {
		case id != "" && used.Has(id):
			kept = append(kept, claim)
		case id != "" && pod != nil:
			writes = append(writes, s.handOver(claim, pod))
			held[pod.UID] = true
		case reuse:
			kept = append(kept, claim)
		default:
			writes = append(writes, write.Write{Verb: write.Delete, Object: claim})
		}
	}
	released := slices.DeleteFunc(s.Ownership(), func(w write.Write) bool { return held[w.Object.GetUID()] })
	return append(released, writes...), kept
}

// beforeDelete returns what is written before the set deletes a pod: its claims go with the pod. Those of a pod that
// stays after all, as where its deletion was refused, return to the set.
func (b *identity) beforeDelete(pod *corev1.Pod) (writes []write.Write) {
	s := b.snapshot
	if !b.deletes(pod) {
		for _, claim := range s.handedOver[pod.UID] {
			set := s.ControllerRef()
			writes = append(writes, owned.Refer(claim, []types.UID{pod.UID}, &set))
		}
		return writes
	}
	for _, claim := range b.claims.Of(pod.Labels[kruise.CloneSetInstanceIDKey]) {
		writes = append(writes, s.handOver(claim, pod))
	}
	return writes
}

// deletes reports whether the pass deletes a pod because it is surplus, or chosen by the user or an update. A pod that
// has finished is replaced otherwise, and leaves its claims to its successor.
func (b *identity) deletes(pod *corev1.Pod) bool {
	hooks := b.snapshot.set.Spec.Lifecycle
	if pod.DeletionTimestamp != nil || hooks != nil && lifecycle.HasAny(pod, hooks.PreDelete) {
		return false
	}
	if workload.IsFinished(pod) {
		_, marked := pod.Labels[kruise.SpecifiedDeleteKey]
		return marked || slices.Contains(b.snapshot.set.Spec.ScaleStrategy.PodsToDelete, pod.Name)
	}
	if b.deleted == nil {
		b.deleted = sets.New[string]()
		for _, i := range b.plan.Pass.Result().Delete {
			b.deleted.Insert(i.Name)
		}
	}
	return b.deleted.Has(pod.Name)
}

// foreignClaims returns the names of the claims of active pods that the set does not control, by the pod.
func (s *snapshot) foreignClaims() map[*corev1.Pod][]string {
	pool, all := s.pool(s.Claims), map[*corev1.Pod][]string{}
	if len(pool.Templates) == 0 {
		return nil
	}
	for _, pod := range s.Active {
		id := pod.Labels[kruise.CloneSetInstanceIDKey]
		for i := range pool.Templates {
			if name := claims.Name(pool.Templates[i].Name, s.set.Name, id); !pool.Has(name, id) {
				all[pod] = append(all[pod], name)
			}
		}
	}
	return all
}

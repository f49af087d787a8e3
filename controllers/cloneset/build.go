package cloneset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// identity gives new pods their identity and their claims.
type identity struct {
	options  Options
	snapshot *snapshot
	plan     *plan
	claims   claims.Pool
	// deleted are the names of the pods that the pass deletes, once they are asked for.
	deleted sets.Set[string]
}

// build returns, for each creation, the missing claims and the pod. It leaves creations out that are too many for one
// pass.
func (b *identity) build(creations []workload.Creation) ([][]write.Object, error) {
	s := b.snapshot
	templates := map[string]*corev1.PodTemplateSpec{b.plan.Update: &s.set.Spec.Template}
	var all [][]write.Object
	b.plan.ids = b.ids(b.plan.MaxCreations(&s.Observation, len(creations), &s.set.Spec))
	for i, id := range b.plan.ids {
		name := creations[i].Revision
		if templates[name] == nil {
			rev := revision.Find(s.Revisions, name)
			if rev == nil {
				return nil, fmt.Errorf("the revision %s is not stored", name)
			}
			template, err := revision.Decode(rev.Data.Raw)
			if err != nil {
				return nil, err
			}
			if err := s.selectorMismatch(template, name); err != nil {
				return nil, err
			}
			templates[name] = template
		}
		var objects []write.Object
		for k := range s.set.Spec.VolumeClaimTemplates {
			if claim := s.newClaim(&s.set.Spec.VolumeClaimTemplates[k], id); !b.claims.Has(claim.Name, id) {
				objects = append(objects, claim)
			}
		}
		all = append(all, append(objects, b.newPod(id, name, templates[name])))
	}
	return all, nil
}

// linger is how long after its grace period a terminating pod keeps its claims from being used by a new one.
const linger = 30 * time.Second

// retryTaken is when to look again at a claim name that is taken: not every owner's claim is watched.
const retryTaken = 30 * time.Second

// noteClaimNameTaken is the code of a note about a pod whose claim name another claim has.
const noteClaimNameTaken = "ClaimNameTaken"

// ids chooses the ids of new pods, and notes what other pods wait for.
func (b *identity) ids(n int) []string {
	s := b.snapshot
	used, leaving := map[string]bool{}, map[string]bool{}
	for _, pod := range s.AllPods() {
		id := pod.Labels[kruise.CloneSetInstanceIDKey]
		used[id], used[s.idInName(pod)] = true, true
		if s.deletesFinished(pod) {
			leaving[id] = true
		}
		if pod.DeletionTimestamp == nil {
			continue
		}
		if rest := pod.DeletionTimestamp.Add(linger).Sub(s.Now); rest > 0 {
			leaving[id] = true
			b.plan.After.In(rest)
		}
	}
	ids, blocked := b.claims.Choose(claims.Demand{
		Now: n, Missing: int(b.plan.Pass.Result().Difference.CreateMissing),
		Used: used, Leaving: leaving, Taken: s.taken, Pending: s.known.pending, New: b.options.NewID,
	})
	for _, id := range blocked {
		b.plan.Waits = append(b.plan.Waits, note.Note{
			Level: note.Waiting, Code: noteClaimNameTaken, Object: s.set.Name + "-" + id, Text: s.taken[id],
		})
		b.plan.After.In(retryTaken)
	}
	return ids
}

// deletesFinished reports whether the pass deletes a pod because it has finished, and no hook holds it.
func (s *snapshot) deletesFinished(pod *corev1.Pod) bool {
	hooks := s.set.Spec.Lifecycle
	return workload.IsFinished(pod) && pod.DeletionTimestamp == nil &&
		(hooks == nil || !lifecycle.HasAny(pod, hooks.PreDelete))
}

func (b *identity) newPod(id, name string, template *corev1.PodTemplateSpec) *corev1.Pod {
	s := b.snapshot
	pod := s.NewPod(template, s.set.Name+"-"+id, podLabels(id, name, b.options))
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.LifecycleTimestampKey, s.Now.Format(time.RFC3339))
	inplace.EnsureReadinessGate(&pod.Spec, nil)
	claims.Mount(&pod.Spec, s.set.Spec.VolumeClaimTemplates, s.set.Name, id)
	return pod
}

func podLabels(id, name string, o Options) labels.Set {
	return labels.Set{
		kruise.PodRevisionLabelKey:     o.revisionLabel(name),
		kruise.PodTemplateHashLabelKey: revision.Short(name),
		kruise.CloneSetInstanceIDKey:   id,
		kruise.LifecycleStateKey:       string(kruise.LifecycleStatePreparingNormal),
	}
}

// selectorMismatch is why a template cannot be used.
func (s *snapshot) selectorMismatch(template *corev1.PodTemplateSpec, name string) error {
	return s.SelectorMismatch(labels.Merge(template.Labels, podLabels("", name, Options{})), name)
}

func (s *snapshot) newClaim(template *corev1.PersistentVolumeClaim, id string) *corev1.PersistentVolumeClaim {
	return claims.New(template, claims.Identity{
		Namespace: s.set.Namespace, Workload: s.set.Name, Pod: id, Owners: []metav1.OwnerReference{s.ControllerRef()},
		Labels: labels.Merge(s.set.Spec.Selector.MatchLabels, labels.Set{kruise.CloneSetInstanceIDKey: id}),
	})
}

// pool returns claims of the set as a pool.
func (s *snapshot) pool(of []*corev1.PersistentVolumeClaim) claims.Pool {
	return claims.Pool{
		Workload: s.set, Label: kruise.CloneSetInstanceIDKey, Templates: s.set.Spec.VolumeClaimTemplates, Claims: of,
	}
}

// revisionLabel is the value of the pods' label controller-revision-hash for a revision.
func (o Options) revisionLabel(name string) string {
	if o.ShortHash {
		return revision.Short(name)
	}
	return name
}

// handOver returns the write that gives a claim to a pod: the garbage collector deletes the claim with the pod,
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

// beforeDelete returns what is written before the set deletes a pod: its claims then belong to the pod. Those of a pod
// that stays after all, as where its deletion was refused, return to the set.
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

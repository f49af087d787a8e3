package cloneset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
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
	claims   []*corev1.PersistentVolumeClaim
}

// build returns, for each creation, the missing claims and the pod.
func (b *identity) build(creations []workload.Creation) ([][]write.Object, error) {
	s := b.snapshot
	templates := map[string]*corev1.PodTemplateSpec{b.plan.update: &s.set.Spec.Template}
	var all [][]write.Object
	b.plan.ids = b.ids(len(creations))
	for i, id := range b.plan.ids {
		name := creations[i].Revision
		if templates[name] == nil {
			rev := s.stored(name)
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
			if claim := s.newClaim(&s.set.Spec.VolumeClaimTemplates[k], id); !hasClaim(b.claims, claim.Name, id) {
				objects = append(objects, claim)
			}
		}
		all = append(all, append(objects, b.newPod(id, name, templates[name])))
	}
	return all, nil
}

// linger is how long after its grace period a terminating pod keeps its claims from being used by a new one.
const linger = 30 * time.Second

// ids are names for new pods: those of claims that no pod has any more first, then those that an attempt has failed with,
// then fresh ones. Pods wait for ids whose claims are about to be free, because their pod is terminating, or whose claim
// names are taken. They keep no other pod from being created.
func (b *identity) ids(n int) []string {
	s := b.snapshot
	taken, leaving := sets.New[string](), sets.New[string]()
	for _, pod := range s.AllPods() {
		id := pod.Labels[pub.CloneSetInstanceIDKey]
		taken.Insert(id, strings.TrimPrefix(pod.Name, s.set.Name+"-"))
		if s.deletesFinished(pod) {
			leaving.Insert(id)
		}
		if pod.DeletionTimestamp == nil {
			continue
		}
		if rest := pod.DeletionTimestamp.Add(linger).Sub(s.now); rest > 0 {
			leaving.Insert(id)
			b.plan.after.In(rest)
		}
	}
	var ids []string
	waiting, names := sets.New[string](), sets.New[string]()
	for _, claim := range b.claims {
		switch id := claim.Labels[pub.CloneSetInstanceIDKey]; {
		case id == "":
		case leaving.Has(id):
			waiting.Insert(id)
		case !taken.Has(id) && s.taken[id] != "":
			waiting.Insert(id)
			names.Insert(id)
		case !taken.Has(id) && len(ids) < n:
			taken.Insert(id)
			ids = append(ids, id)
		}
	}
	missing := int(b.plan.pass.Result().Difference.CreateMissing)
	fresh := slices.DeleteFunc(slices.Clone(s.known.pending), func(id string) bool { return s.taken[id] != "" })
	for len(ids) < min(n, missing-len(waiting)) {
		if len(fresh) == 0 {
			fresh = append(fresh, b.options.NewID())
		}
		id := fresh[0]
		fresh = fresh[1:]
		if !taken.Has(id) {
			taken.Insert(id)
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(ids) < missing {
		b.plan.waitFor(s, sets.List(names))
	}
	return ids
}

// retryTaken is when to look again at a claim name that is taken: not every owner's claim is watched.
const retryTaken = 30 * time.Second

// waitFor notes that pods wait for claim names that are taken.
func (p *plan) waitFor(s *snapshot, ids []string) {
	for _, id := range ids {
		p.waits = append(p.waits, note.Note{Level: note.Waiting, Code: noteClaimNameTaken, Object: s.set.Name + "-" + id, Text: s.taken[id]})
		p.after.In(retryTaken)
	}
}

// noteClaimNameTaken is the code of a note about a pod whose claim name another claim has.
const noteClaimNameTaken = "ClaimNameTaken"

// idle returns the ids that the next new pods get, and that claims may exist for.
func (s *snapshot) idle() []string {
	ids := slices.Clone(s.known.pending)
	if !s.set.Spec.ScaleStrategy.EnablePVCReuse || len(s.Claims) == 0 {
		return ids
	}
	used := make(map[string]bool, len(s.Active))
	for _, pod := range s.AllPods() {
		used[pod.Labels[pub.CloneSetInstanceIDKey]] = true
	}
	for _, claim := range s.Claims {
		if id := claim.Labels[pub.CloneSetInstanceIDKey]; id != "" && !used[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// hasClaim reports whether a claim, of claims in the order of their names, serves an id.
func hasClaim(sorted []*corev1.PersistentVolumeClaim, name, id string) bool {
	i, found := slices.BinarySearchFunc(sorted, name, func(c *corev1.PersistentVolumeClaim, name string) int { return strings.Compare(c.Name, name) })
	return found && sorted[i].Labels[pub.CloneSetInstanceIDKey] == id
}

// whyTaken returns why a claim does not serve an id of the set.
func whyTaken(set *v1beta1.CloneSet, claim *corev1.PersistentVolumeClaim, id string) string {
	switch {
	case !owned.Controls(set, claim):
		return "is not controlled by the CloneSet"
	case claim.DeletionTimestamp == nil && claim.Labels[pub.CloneSetInstanceIDKey] != id:
		return "has another instance id"
	}
	return "is terminating"
}

// deletesFinished reports whether the pass deletes a pod because it has finished, and no hook holds it.
func (s *snapshot) deletesFinished(pod *corev1.Pod) bool {
	hooks := s.set.Spec.Lifecycle
	return workload.IsFinished(pod) && pod.DeletionTimestamp == nil && (hooks == nil || !lifecycle.HasAny(pod, hooks.PreDelete))
}

func (b *identity) newPod(id, name string, template *corev1.PodTemplateSpec) *corev1.Pod {
	s := b.snapshot
	copied := template.DeepCopy()
	pod := &corev1.Pod{Spec: copied.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: s.set.Namespace, Name: s.set.Name + "-" + id, GenerateName: s.set.Name + "-",
		Labels: labels.Merge(copied.Labels, podLabels(id, name, b.options)), Finalizers: copied.Finalizers,
		Annotations:     labels.Merge(copied.Annotations, labels.Set{pub.LifecycleTimestampKey: s.now.Format(time.RFC3339)}),
		OwnerReferences: []metav1.OwnerReference{s.controllerRef()},
	}}
	inplace.EnsureReadinessGate(&pod.Spec)
	claims.Mount(&pod.Spec, s.set.Spec.VolumeClaimTemplates, s.set.Name, id)
	return pod
}

func podLabels(id, name string, o Options) labels.Set {
	return labels.Set{
		pub.PodRevisionLabelKey: o.revisionLabel(name), pub.PodTemplateHashLabelKey: revision.Short(name), pub.CloneSetInstanceIDKey: id,
		pub.LifecycleStateKey: string(pub.LifecycleStatePreparingNormal),
	}
}

// selectorMismatch is why a template cannot be used: its pods would not be the set's, which would release them and create
// others, without end.
func (s *snapshot) selectorMismatch(template *corev1.PodTemplateSpec, name string) error {
	if s.selector.Matches(labels.Merge(template.Labels, podLabels("", name, Options{}))) {
		return nil
	}
	return fmt.Errorf("spec.selector does not match the labels of pods of the template (revision %s)", name)
}

func (s *snapshot) newClaim(template *corev1.PersistentVolumeClaim, id string) *corev1.PersistentVolumeClaim {
	return claims.New(template, claims.Identity{
		Namespace: s.set.Namespace, Workload: s.set.Name, Pod: id, Owners: []metav1.OwnerReference{s.controllerRef()},
		Labels: labels.Merge(s.set.Spec.Selector.MatchLabels, labels.Set{pub.CloneSetInstanceIDKey: id}),
	})
}

func (s *snapshot) controllerRef() metav1.OwnerReference {
	return *metav1.NewControllerRef(s.set, gvk())
}

// claimsOf are the claims that are deleted with a pod.
func (b *identity) claimsOf(pod *corev1.Pod) []write.Object {
	id := pod.Labels[pub.CloneSetInstanceIDKey]
	if id == "" {
		return nil // else every claim without the label would be taken for this pod's
	}
	var all []write.Object
	for _, claim := range b.claims {
		if claim.Labels[pub.CloneSetInstanceIDKey] == id {
			all = append(all, claim)
		}
	}
	return all
}

// ownershipWrites release pods that the selector no longer matches. Where claims are not reused, they also hand claims over
// to a pod that goes, with which the claims go, and delete claims whose pod is gone. kept are the other claims.
func (s *snapshot) ownershipWrites() (writes []write.Write, kept []*corev1.PersistentVolumeClaim) {
	for _, pod := range s.Unselected {
		writes = append(writes, owned.Release(pod, s.set.UID))
	}
	if s.set.Spec.ScaleStrategy.EnablePVCReuse {
		return writes, s.Claims
	}
	if len(s.Claims) == 0 {
		return writes, nil
	}
	used, going := sets.New(s.known.pending...), map[string]*corev1.Pod{}
	for _, pod := range s.Active {
		used.Insert(pod.Labels[pub.CloneSetInstanceIDKey])
	}
	for _, pod := range s.Inactive {
		going[pod.Labels[pub.CloneSetInstanceIDKey]] = pod
	}
	for _, claim := range s.Claims {
		id := claim.Labels[pub.CloneSetInstanceIDKey]
		switch pod := going[id]; {
		case id != "" && used.Has(id):
			kept = append(kept, claim)
		case id != "" && pod != nil:
			owner := metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
			writes = append(writes, owned.Release(claim, s.set.UID, owner))
		default:
			writes = append(writes, write.Write{Verb: write.Delete, Object: claim})
		}
	}
	return writes, kept
}

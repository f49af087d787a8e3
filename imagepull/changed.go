package imagepull

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Changed returns the tags of a NodeImage that changed for jobs: for each the jobs that own it, by UID. A pull on its
// way is no change until it has ended, and neither is a job that became an owner of such a tag: it wrote that itself.
func Changed(before, after *v1beta1.NodeImage) map[Reference]map[types.UID]bool {
	found := map[Reference]map[types.UID]bool{}
	for name, was := range before.Spec.Images {
		for i := range was.Tags {
			compare(found, before, after, Reference{Name: name, Tag: was.Tags[i].Tag})
		}
	}
	for name, is := range after.Spec.Images {
		for i := range is.Tags {
			ref := Reference{Name: name, Tag: is.Tags[i].Tag}
			if tagSpecOf(before, ref) == nil {
				compare(found, before, after, ref)
			}
		}
	}
	return found
}

// compare adds the owners of one tag for whom it is another one.
func compare(found map[Reference]map[types.UID]bool, before, after *v1beta1.NodeImage, ref Reference) {
	was, is := tagSpecOf(before, ref), tagSpecOf(after, ref)
	result := resultOf(after, ref, is)
	same := result == resultOf(before, ref, was) &&
		slices.Equal(before.Spec.Images[ref.Name].PullSecrets, after.Spec.Images[ref.Name].PullSecrets)
	add := func(owner types.UID) {
		if found[ref] == nil {
			found[ref] = map[types.UID]bool{}
		}
		found[ref][owner] = true
	}
	for _, owner := range ownersOf(was) {
		if !same || !isOwner(is, owner.UID) {
			add(owner.UID)
		}
	}
	for _, owner := range ownersOf(is) {
		if result != "" && !isOwner(was, owner.UID) {
			add(owner.UID)
		}
	}
}

func tagSpecOf(n *v1beta1.NodeImage, ref Reference) *v1beta1.ImageTagSpec {
	tags := n.Spec.Images[ref.Name].Tags
	for i := range tags {
		if tags[i].Tag == ref.Tag {
			return &tags[i]
		}
	}
	return nil
}

func ownersOf(t *v1beta1.ImageTagSpec) []corev1.ObjectReference {
	if t == nil {
		return nil
	}
	return t.OwnerReferences
}

func isOwner(t *v1beta1.ImageTagSpec, uid types.UID) bool {
	return slices.ContainsFunc(ownersOf(t), func(o corev1.ObjectReference) bool { return o.UID == uid })
}

// resultOf a pull: empty until it has ended.
func resultOf(n *v1beta1.NodeImage, ref Reference, t *v1beta1.ImageTagSpec) v1beta1.ImagePullPhase {
	if t == nil {
		return ""
	}
	tags := n.Status.ImageStatuses[ref.Name].Tags
	for i := range tags {
		s := &tags[i]
		if s.Tag == ref.Tag && s.Version == t.Version &&
			(s.Phase == v1beta1.ImagePhaseSucceeded || s.Phase == v1beta1.ImagePhaseFailed) {
			return s.Phase
		}
	}
	return ""
}

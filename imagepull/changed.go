package imagepull

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Changed returns the owners for which a tag of a NodeImage changed, each once. A pull on its way is no change until it
// has ended, and neither is a job that became an owner of such a tag: it wrote that itself.
func Changed(before, after *v1beta1.NodeImage) []corev1.ObjectReference {
	var found []corev1.ObjectReference
	for name, was := range before.Spec.Images {
		for i := range was.Tags {
			found = append(found, changedOwners(before, after, Reference{Name: name, Tag: was.Tags[i].Tag})...)
		}
	}
	for name, is := range after.Spec.Images {
		for i := range is.Tags {
			ref := Reference{Name: name, Tag: is.Tags[i].Tag}
			if tagSpecOf(before, ref) == nil {
				found = append(found, changedOwners(before, after, ref)...)
			}
		}
	}
	slices.SortFunc(found, func(a, b corev1.ObjectReference) int { return cmp.Compare(a.UID, b.UID) })
	return slices.CompactFunc(found, func(a, b corev1.ObjectReference) bool { return a.UID == b.UID })
}

// changedOwners returns the owners for which one tag changed.
func changedOwners(before, after *v1beta1.NodeImage, ref Reference) (found []corev1.ObjectReference) {
	was, is := tagSpecOf(before, ref), tagSpecOf(after, ref)
	result := resultOf(after, ref, is)
	same := result == resultOf(before, ref, was) &&
		slices.Equal(before.Spec.Images[ref.Name].PullSecrets, after.Spec.Images[ref.Name].PullSecrets)
	for _, owner := range ownersOf(was) {
		if !same || !isOwner(is, owner.UID) {
			found = append(found, owner)
		}
	}
	for _, owner := range ownersOf(is) {
		if result != "" && !isOwner(was, owner.UID) {
			found = append(found, owner)
		}
	}
	return found
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

package imagepull

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Limits of a NodeImage, which all namespaces share. Jobs of one namespace leave a sixteenth of each to others.
const (
	// MaxImages is how many images a NodeImage lists at most.
	MaxImages = 256
	// MaxTags is how many tags of one image it lists at most.
	MaxTags = 128
	// MaxOwners is how many jobs own one tag at most.
	MaxOwners = 256
	// MaxNodeBytes is how long a NodeImage is at most, as JSON, by an estimate.
	MaxNodeBytes = 1 << 20
)

// hasRoom reports whether a NodeImage takes a job as another owner of an image, at the place of its tag or below zero
// for a new tag.
func (r Request) hasRoom(n *v1beta1.NodeImage, ref Reference, at int) bool {
	image, listed := n.Spec.Images[ref.Name]
	switch {
	case at >= 0:
		owners := image.Tags[at].OwnerReferences
		return within(MaxOwners, len(owners), func() int { return count(owners, r.ofNamespace) })
	case listed:
		return within(MaxTags, len(image.Tags), func() int { return count(image.Tags, r.hasTag) })
	}
	return within(MaxImages, len(n.Spec.Images), func() int {
		mine := 0
		for _, other := range n.Spec.Images {
			if slices.ContainsFunc(other.Tags, r.hasTag) {
				mine++
			}
		}
		return mine
	})
}

// hasTag reports whether a job of the namespace owns a tag.
func (r Request) hasTag(t v1beta1.ImageTagSpec) bool {
	return slices.ContainsFunc(t.OwnerReferences, r.ofNamespace)
}

func (r Request) ofNamespace(o corev1.ObjectReference) bool {
	return isJob(o) && o.Namespace == r.Job.Namespace
}

// within reports whether one more fits below a limit, and below the share of a namespace, which is only counted where
// that is close.
func within(limit, all int, mine func() int) bool {
	share := limit - limit/16
	return all < share || all < limit && mine() < share
}

func count[T any](all []T, is func(T) bool) int {
	n := 0
	for _, one := range all {
		if is(one) {
			n++
		}
	}
	return n
}

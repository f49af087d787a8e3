package revision

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ownership is what to do with an object that a workload may own.
type Ownership string

const (
	// Ignore it: it is another's, or no concern of the workload.
	Ignore Ownership = "Ignore"
	// Keep it: it is owned.
	Keep Ownership = "Keep"
	// Adopt it: make the workload its controller, after a live look that the workload still exists.
	Adopt Ownership = "Adopt"
	// Release it: remove the workload from its owners.
	Release Ownership = "Release"
)

// ControlledBy returns the objects of a list that an owner controls, as a pass needs them that lists by labels: labels
// select objects of other owners, too.
func ControlledBy[T any, P interface {
	*T
	metav1.Object
}](owner metav1.Object, items []T) []P {
	var controlled []P
	for i := range items {
		if object := P(&items[i]); metav1.IsControlledBy(object, owner) {
			controlled = append(controlled, object)
		}
	}
	return controlled
}

// Own decides about an object; matches reports whether the workload's selector matches it.
// It holds for pods, claims and revisions alike.
func Own(owner, object metav1.Object, matches bool) Ownership {
	controller := metav1.GetControllerOfNoCopy(object)
	switch {
	case controller != nil && controller.UID != owner.GetUID():
		return Ignore
	case controller != nil && matches:
		return Keep
	case controller != nil && owner.GetDeletionTimestamp() != nil:
		// The garbage collector needs the reference to delete it.
		return Ignore
	case controller != nil:
		return Release
	case !matches || owner.GetDeletionTimestamp() != nil || object.GetDeletionTimestamp() != nil:
		return Ignore
	}
	return Adopt
}

package revision

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

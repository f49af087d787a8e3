package stored

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/write"
)

// Deletion returns the write that deletes an object.
func (k Kind) Deletion(object metav1.Object) *write.Write {
	target := k.Named(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
	target.SetUID(object.GetUID())
	target.SetResourceVersion(object.GetResourceVersion())
	return &write.Write{Verb: write.Delete, Object: target}
}

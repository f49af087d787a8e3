package driver

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/write"
)

// Eviction returns what is sent for a write with the verb write.Evict: the eviction of its pod, with the preconditions
// of a deletion.
func Eviction(w *write.Write) *policyv1.Eviction {
	options := w.DeleteOptions()
	return &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: w.Object.GetNamespace(), Name: w.Object.GetName()},
		DeleteOptions: &options,
	}
}

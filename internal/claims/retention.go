package claims

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/write"
)

// Retention is what the claims of a workload are deleted with.
type Retention struct {
	// Workload is the reference of claims that are deleted with the workload.
	Workload metav1.OwnerReference
	// WithWorkload deletes claims with the workload, and WithPod with a pod whose ordinal is not wanted any more.
	WithWorkload, WithPod bool
}

// Owner is an object that a claim is, or is not, to be deleted with.
type Owner struct {
	Ref metav1.OwnerReference
	// Owns means that the claim is to refer to the object.
	Owns bool
}

// Own returns the patch that gives a claim its owners; nil where it has them, and where it terminates. References to
// other owners stay.
func Own(claim *corev1.PersistentVolumeClaim, owners ...Owner) []write.Write {
	var remove []types.UID
	var add []*metav1.OwnerReference
	for i := range owners {
		o := &owners[i]
		has := slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return ref.UID == o.Ref.UID
		})
		switch {
		case has && !o.Owns:
			remove = append(remove, o.Ref.UID)
		case !has && o.Owns:
			add = append(add, &o.Ref)
		}
	}
	if len(remove)+len(add) == 0 || claim.DeletionTimestamp != nil {
		return nil
	}
	return []write.Write{owned.Refer(claim, remove, add...)}
}

// PodRef is the reference of a claim that is deleted with a pod.
func PodRef(pod *corev1.Pod) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

// IsLeftOver reports whether a claim is deleted with an earlier pod of a name.
func IsLeftOver(claim *corev1.PersistentVolumeClaim, pod string) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == "Pod" && ref.APIVersion == corev1.SchemeGroupVersion.String() && ref.Name == pod
	})
}

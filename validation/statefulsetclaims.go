package validation

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// StatefulSetExpansion returns what of an update is invalid where updates of pods expand their claims: claim templates keep their names, and
// change in nothing but how much storage they ask for. It returns nothing with another volumeClaimUpdateStrategy. resized are the templates
// whose storage changes, of which a storage class must allow that.
func StatefulSetExpansion(set, stored *appsv1beta1.StatefulSet) (resized []corev1.PersistentVolumeClaim, faults field.ErrorList) {
	if set.Spec.VolumeClaimUpdateStrategy.Type != appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType {
		return nil, nil
	}
	at := ClaimTemplates()
	now, before := set.Spec.VolumeClaimTemplates, stored.Spec.VolumeClaimTemplates
	if len(now) != len(before) {
		return nil, field.ErrorList{field.Forbidden(at, "must keep their number with OnPodRollingUpdate")}
	}
	for i := range now {
		k := slices.IndexFunc(before, func(c corev1.PersistentVolumeClaim) bool { return c.Name == now[i].Name })
		if k < 0 {
			faults = append(faults, field.Forbidden(at.Key(now[i].Name).Child("name"), "must not change with OnPodRollingUpdate"))
			continue
		}
		is, was := now[i].Spec.DeepCopy(), before[k].Spec.DeepCopy()
		if storageOf(is) != storageOf(was) {
			resized = append(resized, now[i])
		}
		for _, spec := range []*corev1.PersistentVolumeClaimSpec{is, was} {
			delete(spec.Resources.Requests, corev1.ResourceStorage)
			delete(spec.Resources.Limits, corev1.ResourceStorage)
			spec.VolumeMode = cmp.Or(spec.VolumeMode, ptr.To(corev1.PersistentVolumeFilesystem))
		}
		if !equality.Semantic.DeepEqual(is, was) {
			faults = append(faults, field.Forbidden(at.Key(now[i].Name), "must change in nothing but the storage of resources with OnPodRollingUpdate"))
		}
	}
	return resized, faults
}

// ClaimTemplates is the path of the claim templates of a workload.
func ClaimTemplates() *field.Path { return field.NewPath("spec", "volumeClaimTemplates") }

type storage struct{ request, limit string }

// storageOf is how much storage a claim asks for, in the notation that equal amounts share.
func storageOf(spec *corev1.PersistentVolumeClaimSpec) storage {
	request, limit := spec.Resources.Requests[corev1.ResourceStorage], spec.Resources.Limits[corev1.ResourceStorage]
	return storage{request.String(), limit.String()}
}

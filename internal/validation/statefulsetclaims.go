package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// StatefulSetExpansion returns what of an update is invalid where updates of pods expand their claims: claim templates
// keep their names, storage classes and access modes, as existing claims do. It returns nothing with another
// volumeClaimUpdateStrategy. resized are the templates whose storage changes, of which a storage class must allow that.
func StatefulSetExpansion(
	set, stored *appsv1beta1.StatefulSet,
) (resized []corev1.PersistentVolumeClaim, faults field.ErrorList) {
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
			faults = append(faults,
				field.Forbidden(at.Key(now[i].Name).Child("name"), "must not change with OnPodRollingUpdate"))
			continue
		}
		is, was := &now[i].Spec, &before[k].Spec
		if storageOf(is) != storageOf(was) {
			resized = append(resized, now[i])
		}
		classes := is.StorageClassName != nil && was.StorageClassName != nil && *is.StorageClassName != *was.StorageClassName
		if classes || !slices.Equal(is.AccessModes, was.AccessModes) {
			faults = append(faults,
				field.Forbidden(at.Key(now[i].Name), "must keep its storage class and access modes with OnPodRollingUpdate"))
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

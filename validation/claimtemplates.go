package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Resize is a claim template whose storage request changes. The webhook looks up whether its storage class can expand volumes.
type Resize struct {
	// Path of the claim template.
	Path *field.Path
	// Class is the name of the storage class; nil for the default one.
	Class *string
}

// StatefulSetClaims returns what is forbidden in the claim templates of a StatefulSet that expands the claims of running pods, and which templates
// change their size. Where the set does not expand claims, its templates concern new claims only, and all may change.
func StatefulSetClaims(set, stored *appsv1beta1.StatefulSet) (field.ErrorList, []Resize) {
	if set.Spec.VolumeClaimUpdateStrategy.Type != appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType {
		return nil, nil
	}
	at := field.NewPath("spec", "volumeClaimTemplates")
	have, had := set.Spec.VolumeClaimTemplates, stored.Spec.VolumeClaimTemplates
	if len(have) != len(had) {
		return field.ErrorList{field.Forbidden(at, "templates must not be added or removed while claims are expanded")}, nil
	}
	before := map[string]*corev1.PersistentVolumeClaim{}
	for i := range had {
		before[had[i].Name] = &had[i]
	}
	var faults field.ErrorList
	var resizes []Resize
	for i := range have {
		template, path := &have[i], at.Key(have[i].Name)
		old, ok := before[template.Name]
		switch {
		case !ok:
			faults = append(faults, field.Forbidden(path.Child("name"), "must not change while claims are expanded"))
		case !equality.Semantic.DeepEqual(withoutStorage(&template.Spec), withoutStorage(&old.Spec)):
			faults = append(faults, field.Forbidden(path.Child("spec"), "only the storage request and limit can be changed while claims are expanded"))
		case template.Spec.Resources.Requests.Storage().Cmp(*old.Spec.Resources.Requests.Storage()) != 0:
			resizes = append(resizes, Resize{Path: path, Class: template.Spec.StorageClassName})
		}
	}
	return faults, resizes
}

// withoutStorage is a copy of the spec of a claim without its amounts of storage.
func withoutStorage(spec *corev1.PersistentVolumeClaimSpec) *corev1.PersistentVolumeClaimSpec {
	s := spec.DeepCopy()
	delete(s.Resources.Requests, corev1.ResourceStorage)
	delete(s.Resources.Limits, corev1.ResourceStorage)
	return s
}

package podstate

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Validate returns what is invalid in a PersistentPodState. Targets are further kinds that the installation
// allows.
func Validate(s *appsv1beta1.PersistentPodState, targets ...schema.GroupKind) field.ErrorList {
	at, spec := field.NewPath("spec"), &s.Spec
	faults := checkStateTarget(spec.TargetReference, targets, at.Child("targetRef"))
	required := spec.RequiredPersistentTopology
	if required == nil && len(spec.PreferredPersistentTopology) == 0 {
		faults = append(faults, field.Invalid(at, "", "must have requiredPersistentTopology or preferredPersistentTopology"))
	}
	if required != nil {
		faults = append(faults, checkLabelKeys(required.Keys, at.Child("requiredPersistentTopology", "keys"))...)
	}
	for i := range spec.PreferredPersistentTopology {
		term, at := &spec.PreferredPersistentTopology[i], at.Child("preferredPersistentTopology").Index(i)
		if term.Weight < 1 || term.Weight > 100 {
			faults = append(faults, field.Invalid(at.Child("weight"), term.Weight, "must be from 1 to 100"))
		}
		faults = append(faults, checkLabelKeys(term.Preference.Keys, at.Child("preference", "keys"))...)
	}
	for i := range spec.PersistentPodAnnotations {
		key := spec.PersistentPodAnnotations[i].Key
		for range apivalidation.ValidateAnnotations(map[string]string{key: ""}, at) {
			faults = append(faults,
				field.Invalid(at.Child("persistentPodAnnotations").Index(i).Child("key"), key, "must be the key of an annotation"))
		}
	}
	if text := s.Annotations[appsv1beta1.AnnotationReleaseMissingTopologyAfter]; text != "" {
		if _, err := ParseRelease(text); err != nil {
			path := field.NewPath("metadata", "annotations").Key(appsv1beta1.AnnotationReleaseMissingTopologyAfter)
			faults = append(faults, field.Invalid(path, text, "must be a duration that is not negative, such as 10m"))
		}
	}
	return faults
}

// ValidateUpdate returns the changes that are forbidden.
func ValidateUpdate(s, stored *appsv1beta1.PersistentPodState) field.ErrorList {
	if s.Spec.TargetReference == stored.Spec.TargetReference {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "targetRef"), "must not change")}
}

// Conflict returns a fault where another PersistentPodState of the namespace has the same target; nil
// where none has.
func Conflict(
	s *appsv1beta1.PersistentPodState, others []appsv1beta1.PersistentPodState,
) *field.Error {
	is, parsed := TargetOf(s)
	for i := range others {
		other, also := TargetOf(&others[i])
		if parsed && also && is == other && others[i].Name != s.Name && others[i].DeletionTimestamp == nil {
			return field.Invalid(field.NewPath("spec", "targetRef"), s.Spec.TargetReference,
				"must not be the target of PersistentPodState "+others[i].Name+", too")
		}
	}
	return nil
}

func checkStateTarget(ref appsv1beta1.TargetReference, targets []schema.GroupKind, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
		faults = append(faults, field.Invalid(at, ref, "must have apiVersion, kind and name"))
	}
	target, is := Refer(ref)
	if !is || !slices.Contains(append(Targets(), targets...), target.GroupKind()) {
		faults = append(faults, field.Invalid(at, ref,
			"must be a StatefulSet of the group apps or apps.kruise.io, or a kind that the installation allows"))
	}
	return faults
}

func checkLabelKeys(keys []string, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	for i, key := range keys {
		faults = append(faults, metav1validation.ValidateLabelName(key, at.Index(i))...)
	}
	if len(keys) == 0 {
		faults = append(faults, field.Required(at, "must name a label of nodes"))
	}
	return faults
}

package podstate

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Validate returns the errors of a PersistentPodState. Targets are further kinds that the installation allows.
func Validate(s *State, targets ...schema.GroupKind) field.ErrorList {
	at, spec := field.NewPath("spec"), &s.Spec
	faults := validateTarget(s, targets, at.Child("targetRef"))
	required := spec.RequiredPersistentTopology
	if required == nil && len(spec.PreferredPersistentTopology) == 0 {
		faults = append(faults, field.Invalid(at, "", "must have requiredPersistentTopology or preferredPersistentTopology"))
	}
	if required != nil {
		faults = append(faults, validateKeys(required.Keys, at.Child("requiredPersistentTopology", "keys"))...)
	}
	for i := range spec.PreferredPersistentTopology {
		term, at := &spec.PreferredPersistentTopology[i], at.Child("preferredPersistentTopology").Index(i)
		if term.Weight < 1 || term.Weight > 100 {
			faults = append(faults, field.Invalid(at.Child("weight"), term.Weight, "must be from 1 to 100"))
		}
		faults = append(faults, validateKeys(term.Preference.Keys, at.Child("preference", "keys"))...)
	}
	for i := range spec.PersistentPodAnnotations {
		key := spec.PersistentPodAnnotations[i].Key
		for range apivalidation.ValidateAnnotations(map[string]string{key: ""}, at) {
			faults = append(faults,
				field.Invalid(at.Child("persistentPodAnnotations").Index(i).Child("key"), key, "must be the key of an annotation"))
		}
	}
	if _, err := ReleaseAfter(s); err != nil {
		key := v1beta1.AnnotationReleaseMissingTopologyAfter
		faults = append(faults, field.Invalid(field.NewPath("metadata", "annotations").Key(key), s.Annotations[key],
			"must be a duration that is not negative, such as 10m"))
	}
	return faults
}

// ValidateUpdate returns the changes that are forbidden.
func ValidateUpdate(s, stored *State) field.ErrorList {
	if s.Spec.TargetReference == stored.Spec.TargetReference {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "targetRef"), "must not change")}
}

// Conflicts reports whether another PersistentPodState of the namespace has the same target.
func Conflicts(s, other *State) bool {
	target, ok := TargetOf(s)
	taken, parsed := TargetOf(other)
	return ok && parsed && target == taken && other.Name != s.Name && other.DeletionTimestamp == nil
}

func validateTarget(s *State, targets []schema.GroupKind, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	ref := s.Spec.TargetReference
	if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
		faults = append(faults, field.Invalid(at, ref, "must have apiVersion, kind and name"))
	}
	if target, ok := TargetOf(s); !ok || !slices.Contains(append(Targets(), targets...), target.GroupKind) {
		faults = append(faults, field.Invalid(at, ref,
			"must be a StatefulSet of the group apps or apps.kruise.io, or a kind that the installation allows"))
	}
	return faults
}

func validateKeys(keys []string, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	for i, key := range keys {
		faults = append(faults, metav1validation.ValidateLabelName(key, at.Index(i))...)
	}
	if len(keys) == 0 {
		faults = append(faults, field.Required(at, "must name a label of nodes"))
	}
	return faults
}

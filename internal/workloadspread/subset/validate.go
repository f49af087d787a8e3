package subset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/scale"
)

// MaxSubsets is how many subsets a WorkloadSpread may have.
const MaxSubsets = 100

const (
	// criticalSeconds is the time that all subsets but the last may wait for nodes together.
	criticalSeconds = 295
)

// Targets are the kinds that every WorkloadSpread may have as its target.
func Targets() []schema.GroupKind {
	return []schema.GroupKind{
		{Group: "apps.kruise.io", Kind: "CloneSet"},
		{Group: "apps", Kind: "Deployment"},
		{Group: "apps", Kind: "ReplicaSet"},
		{Group: "batch", Kind: "Job"},
		{Group: "apps", Kind: "StatefulSet"},
		{Group: "apps.kruise.io", Kind: "StatefulSet"},
	}
}

// Validate returns what is invalid in a WorkloadSpread. Targets are further kinds that the installation allows.
func Validate(ws *appsv1beta1.WorkloadSpread, targets ...schema.GroupKind) field.ErrorList {
	at, spec := field.NewPath("spec"), &ws.Spec
	faults := apivalidation.ValidateObjectMeta(
		&ws.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	faults = append(faults, checkSpreadTarget(spec.TargetReference, targets, at.Child("targetRef"))...)
	if f := spec.TargetFilter; f != nil {
		if len(metav1validation.ValidateLabelSelector(f.Selector,
			metav1validation.LabelSelectorValidationOptions{}, at)) > 0 {
			faults = append(faults,
				field.Invalid(at.Child("targetFilter"), f.Selector, "selector must be a valid label selector"))
		}
		if n := len(f.ReplicasPathList); n > MaxPaths {
			faults = append(faults, field.TooMany(at.Child("targetFilter", "replicasPathList"), n, MaxPaths))
		}
	}
	faults = append(faults, checkSpreadSubsets(spec, at.Child("subsets"))...)
	return append(faults, checkSpreadStrategy(spec, at.Child("scheduleStrategy"))...)
}

// ValidateUpdate returns the changes that are forbidden.
func ValidateUpdate(ws, stored *appsv1beta1.WorkloadSpread) field.ErrorList {
	before, had := TargetOf(stored)
	target, has := TargetOf(ws)
	if !had || !has || before == target {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "targetRef"), ws.Spec.TargetReference,
		"group, kind and name must not change")}
}

// Conflict returns the WorkloadSpread that has the same target already; nil where there is none.
func Conflict(ws *appsv1beta1.WorkloadSpread, others []*appsv1beta1.WorkloadSpread) *field.Error {
	target, ok := TargetOf(ws)
	for _, other := range others {
		with, has := TargetOf(other)
		if ok && has && with == target && other.Name != ws.Name && other.DeletionTimestamp == nil {
			return field.Invalid(field.NewPath("spec", "targetRef"), ws.Spec.TargetReference,
				fmt.Sprintf("must not be the target of WorkloadSpread %s, too", other.Name))
		}
	}
	return nil
}

func checkSpreadTarget(ref *appsv1beta1.TargetReference, targets []schema.GroupKind, at *field.Path) field.ErrorList {
	if ref == nil {
		return field.ErrorList{field.Required(at, "must name the workload whose pods are spread")}
	}
	var faults field.ErrorList
	for _, part := range []struct{ name, value string }{
		{"apiVersion", ref.APIVersion}, {"kind", ref.Kind}, {"name", ref.Name},
	} {
		if part.value == "" {
			faults = append(faults, field.Required(at.Child(part.name), "must not be empty"))
		}
	}
	if len(faults) > 0 {
		return faults
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return append(faults, field.Invalid(at.Child("apiVersion"), ref.APIVersion, "must be a group and a version"))
	}
	if slices.Contains(append(Targets(), targets...), (schema.GroupKind{Group: version.Group, Kind: ref.Kind})) {
		return nil
	}
	return append(faults, field.Invalid(at, ref, "must be a CloneSet, Deployment, ReplicaSet, Job or StatefulSet with "+
		"its API group, or a kind that the installation allows"))
}

func checkSpreadSubsets(spec *appsv1beta1.WorkloadSpreadSpec, at *field.Path) field.ErrorList {
	switch n := len(spec.Subsets); {
	case n == 0:
		return field.ErrorList{field.Required(at, "must have at least one subset")}
	case n > MaxSubsets:
		return field.ErrorList{field.TooMany(at, n, MaxSubsets)}
	}
	var faults field.ErrorList
	names := map[string]bool{}
	for i := range spec.Subsets {
		s, at := &spec.Subsets[i], at.Index(i)
		switch {
		case s.Name == "":
			faults = append(faults, field.Required(at.Child("name"), "must not be empty"))
		case names[s.Name]:
			faults = append(faults, field.Duplicate(at.Child("name"), s.Name))
		}
		names[s.Name] = true
		faults = append(faults, checkSubsetNodes(s, at)...)
		faults = append(faults, checkSubsetPatch(s.Patch.Raw, at.Child("patch"))...)
	}
	return append(faults, checkMaxReplicas(spec, at)...)
}

// checkSubsetPatch returns why a patch is none. Whether it suits the pods is for the webhook, which reads the target.
func checkSubsetPatch(raw []byte, at *field.Path) field.ErrorList {
	if len(raw) == 0 {
		return nil
	}
	var patch map[string]any
	if err := json.Unmarshal(raw, &patch); err != nil {
		return field.ErrorList{field.Invalid(at, string(raw), "must be an object: "+err.Error())}
	}
	return nil
}

func checkMaxReplicas(spec *appsv1beta1.WorkloadSpreadSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	var first *intstr.IntOrString
	sum := int64(0)
	for i := range spec.Subsets {
		most := spec.Subsets[i].MaxReplicas
		if most == nil {
			continue
		}
		at := at.Index(i).Child("maxReplicas")
		if first == nil {
			first = most
		}
		if most.Type != first.Type {
			faults = append(faults, field.Invalid(at, most.String(), "all must be numbers, or all must be percentages"))
			continue
		}
		if most.Type == intstr.Int {
			if most.IntVal < 0 {
				faults = append(faults, field.Invalid(at, most.IntVal, "must not be negative"))
			}
			continue
		}
		percent, err := wholePercent(*most)
		switch {
		case err != nil:
			faults = append(faults, field.Invalid(at, most.StrVal, err.Error()))
		case spec.TargetReference != nil && spec.TargetReference.Kind == "StatefulSet":
			faults = append(faults, field.Invalid(at, most.StrVal, "must be a number for a StatefulSet"))
		default:
			if sum += percent; sum > 100 {
				faults = append(faults, field.Invalid(at, most.StrVal, "percentages must not exceed 100% together"))
			}
		}
	}
	last := spec.Subsets[len(spec.Subsets)-1].MaxReplicas
	if len(faults) == 0 && last != nil && last.Type == intstr.String && sum < 100 {
		faults = append(faults, field.Invalid(at.Index(0).Child("maxReplicas"), first.String(),
			"percentages must be 100% together where the last subset has one"))
	}
	return faults
}

// wholePercent returns a percentage without a fraction.
func wholePercent(v intstr.IntOrString) (int64, error) {
	const precision = 1000
	thousand, err := scale.Amount(v, 100*precision, scale.RoundDown)
	if err == nil && (thousand < 0 || thousand%precision != 0) {
		err = errors.New("must be a percentage without a fraction, and not negative")
	}
	return int64(thousand) / precision, err
}

func checkSpreadStrategy(spec *appsv1beta1.WorkloadSpreadSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	s, n := &spec.ScheduleStrategy, len(spec.Subsets)
	isAdaptive := s.Type == appsv1beta1.AdaptiveWorkloadSpreadScheduleStrategyType
	switch s.Type {
	case "", appsv1beta1.FixedWorkloadSpreadScheduleStrategyType, appsv1beta1.AdaptiveWorkloadSpreadScheduleStrategyType:
	default:
		faults = append(faults, field.NotSupported(at.Child("type"), s.Type, []appsv1beta1.WorkloadSpreadScheduleStrategyType{
			appsv1beta1.AdaptiveWorkloadSpreadScheduleStrategyType, appsv1beta1.FixedWorkloadSpreadScheduleStrategyType,
		}))
	}
	if s.Adaptive != nil && !isAdaptive {
		faults = append(faults, field.Invalid(at.Child("type"), s.Type, "must be Adaptive where adaptive is set"))
	}
	if s.Adaptive != nil && isAdaptive && n > 1 && spec.Subsets[n-1].MaxReplicas != nil {
		faults = append(faults, field.Invalid(at.Child("adaptive"), spec.Subsets[n-1].MaxReplicas.String(),
			"the last subset must have no maxReplicas, because it takes what the others cannot"))
	}
	if s.Adaptive == nil || s.Adaptive.RescheduleCriticalSeconds == nil {
		return faults
	}
	seconds, path := *s.Adaptive.RescheduleCriticalSeconds, at.Child("adaptive", "rescheduleCriticalSeconds")
	if seconds < 0 {
		faults = append(faults, field.Invalid(path, seconds, "must not be negative"))
	}
	if most := criticalSeconds / max(n-1, 1); n > 1 && int(seconds) > most {
		faults = append(faults, field.Invalid(path, seconds, fmt.Sprintf("must be at most %d for %d subsets", most, n)))
	}
	return faults
}

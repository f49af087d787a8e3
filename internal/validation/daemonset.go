package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/scale"
)

// DaemonSet returns what is invalid in a DaemonSet of apps.kruise.io, with its defaults or without. Of the pod template
// it checks only what is special to DaemonSets; the rest is for the API server.
func DaemonSet(set *appsv1beta1.DaemonSet) field.ErrorList {
	at, spec := field.NewPath("spec"), &set.Spec
	faults := validation.ValidateObjectMeta(&set.ObjectMeta, true, validation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	faults = append(faults, Selector(spec.Selector, &spec.Template, at)...)
	faults = append(faults, RunsForever(&spec.Template.Spec, "DaemonSet", at.Child("template", "spec"))...)
	if n := spec.MinReadySeconds; n < 0 {
		faults = append(faults, field.Invalid(at.Child("minReadySeconds"), n, "must not be negative"))
	}
	if n := spec.RevisionHistoryLimit; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("revisionHistoryLimit"), *n, "must not be negative"))
	}
	if l := spec.Lifecycle; l != nil && l.InPlaceUpdate != nil {
		faults = append(faults,
			field.Forbidden(at.Child("lifecycle", "inPlaceUpdate"), "a DaemonSet has no hook around updates in place"))
	}
	if n, wrong := Amount(spec.BurstReplicas, 100, at.Child("burstReplicas")); len(wrong) > 0 {
		faults = append(faults, wrong...)
	} else if spec.BurstReplicas != nil && n == 0 {
		faults = append(faults, field.Invalid(at.Child("burstReplicas"), spec.BurstReplicas.String(), "must be more than 0"))
	}
	return append(faults, checkDaemonSetStrategy(&spec.UpdateStrategy, at.Child("updateStrategy"))...)
}

// DaemonSetUpdate returns the changes that are forbidden.
func DaemonSetUpdate(set, stored *appsv1beta1.DaemonSet) field.ErrorList {
	if equality.Semantic.DeepEqual(set.Spec.Selector, stored.Spec.Selector) { // all other fields can be changed
		return nil
	}
	return field.ErrorList{
		field.Forbidden(field.NewPath("spec"), "only template, updateStrategy, lifecycle, burstReplicas, minReadySeconds, "+
			"revisionHistoryLimit and scaleStrategy can be changed"),
	}
}

func checkDaemonSetStrategy(s *appsv1beta1.DaemonSetUpdateStrategy, at *field.Path) field.ErrorList {
	types := []appsv1beta1.DaemonSetUpdateStrategyType{
		appsv1beta1.RollingUpdateDaemonSetStrategyType, appsv1beta1.OnDeleteDaemonSetStrategyType,
	}
	switch {
	case s.Type != "" && !slices.Contains(types, s.Type):
		return field.ErrorList{field.NotSupported(at.Child("type"), s.Type, types)}
	case s.Type == appsv1beta1.OnDeleteDaemonSetStrategyType:
		return nil // only paused counts besides it
	}
	s = s.DeepCopy()
	s.Default()
	u := s.RollingUpdate
	at = at.Child("rollingUpdate")
	var faults field.ErrorList
	known := []appsv1beta1.RollingUpdateType{appsv1beta1.StandardRollingUpdateType, appsv1beta1.InplaceRollingUpdateType}
	if !slices.Contains(known, u.Type) {
		faults = append(faults, field.NotSupported(at.Child("rollingUpdateType"), u.Type, known))
	}
	faults = append(faults, checkDaemonSetBudgets(u, at)...)
	_, wrong := share(u.Partition, at.Child("partition"))
	faults = append(faults, wrong...)
	if u.Selector != nil {
		faults = append(faults, LabelSelector(u.Selector, at.Child("selector"))...)
	}
	return faults
}

// checkDaemonSetBudgets validates that exactly one of the two bounds is not zero.
func checkDaemonSetBudgets(u *appsv1beta1.RollingUpdateDaemonSet, at *field.Path) field.ErrorList {
	unavailable, wrong := share(u.MaxUnavailable, at.Child("maxUnavailable"))
	surge, more := share(u.MaxSurge, at.Child("maxSurge"))
	faults := slices.Concat(wrong, more)
	switch {
	case len(faults) > 0:
	case unavailable > 0 && surge > 0:
		faults = append(faults,
			field.Invalid(at.Child("maxSurge"), u.MaxSurge.String(), "must be 0 where maxUnavailable is not 0"))
	case unavailable == 0 && surge == 0:
		faults = append(faults, field.Required(at.Child("maxUnavailable"), "must not be 0 where maxSurge is 0"))
	case surge > 0 && u.Type == appsv1beta1.InplaceRollingUpdateType:
		faults = append(faults, field.Required(at.Child("maxSurge"), "must be 0 with rollingUpdateType InPlaceIfPossible"))
	}
	return faults
}

// share returns a number of nodes, or a percentage of at most 100%, of one hundred nodes; 0 for nil.
func share(v *intstr.IntOrString, at *field.Path) (int32, field.ErrorList) {
	n, faults := Amount(v, 100, at)
	if len(faults) > 0 || v == nil || v.Type == intstr.Int {
		return n, faults
	}
	if all, err := scale.Amount(*v, 100, scale.RoundUp); err == nil && all > 100 {
		return 0, field.ErrorList{field.Invalid(at, v.String(), "must not be greater than 100%")}
	}
	return n, nil
}

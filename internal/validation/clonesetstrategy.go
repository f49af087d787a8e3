package validation

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// checkCloneSetStrategy validates the block of rolling updates for every type: its budgets also hold for pods in
// podsToDelete.
func checkCloneSetStrategy(spec *appsv1beta1.CloneSetSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	switch t := spec.UpdateStrategy.Type; t {
	case "", appsv1beta1.RollingUpdateCloneSetUpdateStrategyType, appsv1beta1.OnDeleteCloneSetUpdateStrategyType:
	default:
		faults = append(faults, field.NotSupported(at.Child("type"), t, []appsv1beta1.CloneSetUpdateStrategyType{
			appsv1beta1.RollingUpdateCloneSetUpdateStrategyType, appsv1beta1.OnDeleteCloneSetUpdateStrategyType,
		}))
	}
	u := spec.UpdateStrategy.RollingUpdate
	if u == nil {
		return faults
	}
	at = at.Child("rollingUpdate")
	switch p := u.PodUpdatePolicy; p {
	case "", appsv1beta1.RecreateCloneSetPodUpdateStrategyType, appsv1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
		appsv1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType:
	default:
		faults = append(faults, field.NotSupported(at.Child("podUpdatePolicy"), p, []appsv1beta1.CloneSetPodUpdatePolicyType{
			appsv1beta1.RecreateCloneSetPodUpdateStrategyType, appsv1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
			appsv1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType,
		}))
	}
	faults = append(faults, checkCloneSetBudgets(u, replicas(spec), at)...)
	faults = append(faults, Priority(u.PriorityStrategy, at.Child("priorityStrategy"))...)
	faults = append(faults, Scatter(u.ScatterStrategy, at.Child("scatterStrategy"))...)
	return append(faults, checkInPlaceUpdate(u.InPlaceUpdateStrategy, at.Child("inPlaceUpdateStrategy"))...)
}

func checkCloneSetBudgets(u *appsv1beta1.RollingUpdateCloneSetStrategy, total int32, at *field.Path) field.ErrorList {
	_, faults := Amount(u.Partition, total, at.Child("partition"))
	unavailable, wrong := Amount(u.MaxUnavailable, total, at.Child("maxUnavailable"))
	if u.MaxUnavailable == nil {
		unavailable = 1 // the default, rounded up, is never less
	}
	surge, more := Amount(u.MaxSurge, total, at.Child("maxSurge"))
	faults = append(append(faults, wrong...), more...)
	if surge > 0 && u.PodUpdatePolicy == appsv1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType {
		faults = append(faults,
			field.Invalid(at.Child("maxSurge"), u.MaxSurge.String(), "there is no surge with InPlaceOnly"))
	}
	if len(wrong)+len(more) == 0 && total > 0 && unavailable < 1 && surge < 1 {
		faults = append(faults, field.Invalid(at.Child("maxUnavailable"), u.MaxUnavailable.String(),
			"with neither an unavailable pod nor a surge, no pod can be updated"))
	}
	return faults
}

func checkInPlaceUpdate(s *kruise.InPlaceUpdateStrategy, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var faults field.ErrorList
	if p := s.ImagePreDownloadParallelism; p != nil && !isCount(p) {
		faults = append(faults,
			field.Invalid(at.Child("imagePreDownloadParallelism"), p.String(), "must be a number, and not negative"))
	}
	if n := s.ImagePreDownloadTimeoutSeconds; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("imagePreDownloadTimeoutSeconds"), *n, "must not be negative"))
	}
	if n := s.ImagePreDownloadMinUpdatedReadyPods; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("imagePreDownloadMinUpdatedReadyPods"), *n, "must not be negative"))
	}
	return faults
}

// isCount reports whether a value is a number of nodes, which may be a string.
func isCount(v *intstr.IntOrString) bool {
	if v.Type == intstr.Int {
		return v.IntVal >= 0
	}
	n, err := strconv.ParseInt(v.StrVal, 10, 32)
	return err == nil && n >= 0
}

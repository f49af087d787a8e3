package validation

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// CloneSet returns what is invalid in a CloneSet, with its defaults or without. Of the pod template it checks only what
// is special to CloneSets; the rest is for the API server.
func CloneSet(set *appsv1beta1.CloneSet) field.ErrorList {
	at, spec := field.NewPath("spec"), &set.Spec
	faults := validation.ValidateObjectMeta(&set.ObjectMeta, true, validation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	if n := replicas(spec); n < 0 {
		faults = append(faults, field.Invalid(at.Child("replicas"), n, "must not be negative"))
	}
	faults = append(faults, Selector(spec.Selector, &spec.Template, at)...)
	faults = append(faults, RunsForever(&spec.Template.Spec, "CloneSet", at.Child("template", "spec"))...)
	faults = append(faults, checkScaleStrategy(spec, at.Child("scaleStrategy"))...)
	faults = append(faults, checkCloneSetStrategy(spec, at.Child("updateStrategy"))...)
	return append(faults, checkProgressDeadline(spec, at.Child("progressDeadlineSeconds"))...)
}

// CloneSetUpdate returns the changes that are forbidden.
func CloneSetUpdate(set, stored *appsv1beta1.CloneSet) field.ErrorList {
	var faults field.ErrorList
	at := field.NewPath("spec")
	// All other fields can be changed.
	if !equality.Semantic.DeepEqual(set.Spec.Selector, stored.Spec.Selector) {
		faults = append(faults,
			field.Forbidden(at, "only replicas, template, volumeClaimTemplates, scaleStrategy, updateStrategy, "+
				"lifecycle, minReadySeconds, progressDeadlineSeconds and revisionHistoryLimit can be changed"))
	}
	if inPlaceOnly(&set.Spec) && !onlyImages(&stored.Spec.Template.Spec, &set.Spec.Template.Spec) {
		faults = append(faults,
			field.Forbidden(at, "with InPlaceOnly, only the images of containers can be changed in template.spec"))
	}
	return faults
}

func replicas(spec *appsv1beta1.CloneSetSpec) int32 {
	if spec.Replicas == nil {
		return 1
	}
	return *spec.Replicas
}

func inPlaceOnly(spec *appsv1beta1.CloneSetSpec) bool {
	s := spec.UpdateStrategy
	return s.Type != appsv1beta1.OnDeleteCloneSetUpdateStrategyType && s.RollingUpdate != nil &&
		s.RollingUpdate.PodUpdatePolicy == appsv1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
}

// onlyImages reports whether two pods differ in nothing but the images of their containers.
func onlyImages(from, to *corev1.PodSpec) bool {
	if len(from.Containers) != len(to.Containers) {
		return false
	}
	from = from.DeepCopy()
	for i := range from.Containers {
		from.Containers[i].Image = to.Containers[i].Image
	}
	return equality.Semantic.DeepEqual(from, to)
}

func checkScaleStrategy(spec *appsv1beta1.CloneSetSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	seen := sets.New[string]()
	for _, name := range spec.ScaleStrategy.PodsToDelete {
		if seen.Has(name) {
			faults = append(faults, field.Duplicate(at.Child("podsToDelete"), name))
		}
		seen.Insert(name)
	}
	_, more := Amount(spec.ScaleStrategy.MaxUnavailable, replicas(spec), at.Child("maxUnavailable"))
	return append(faults, more...)
}

// checkProgressDeadline accepts the largest number always: it means that there is no deadline.
func checkProgressDeadline(spec *appsv1beta1.CloneSetSpec, at *field.Path) field.ErrorList {
	switch deadline := spec.ProgressDeadlineSeconds; {
	case deadline == nil || *deadline == math.MaxInt32:
	case *deadline < 0:
		return field.ErrorList{field.Invalid(at, *deadline, "must not be negative")}
	case *deadline <= spec.MinReadySeconds:
		return field.ErrorList{field.Invalid(at, *deadline, "must be greater than minReadySeconds")}
	}
	return nil
}

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

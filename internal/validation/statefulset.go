package validation

import (
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/scale"
)

// StatefulSet returns what is invalid in a StatefulSet of apps.kruise.io, with its defaults or without. Of the pod
// template it checks only what is special to StatefulSets; the rest is for the API server.
func StatefulSet(set *appsv1beta1.StatefulSet) field.ErrorList {
	at, spec := field.NewPath("spec"), &set.Spec
	faults := validation.ValidateObjectMeta(&set.ObjectMeta, true, validation.NameIsDNSLabel, field.NewPath("metadata"))
	if n := spec.Replicas; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("replicas"), *n, "must not be negative"))
	}
	if n := spec.RevisionHistoryLimit; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("revisionHistoryLimit"), *n, "must not be negative"))
	}
	faults = append(faults, Selector(spec.Selector, &spec.Template, at)...)
	faults = append(faults, RunsForever(&spec.Template.Spec, "StatefulSet", at.Child("template", "spec"))...)
	faults = append(faults, checkOrdinals(spec, at)...)
	faults = append(faults,
		checkRetention(spec.PersistentVolumeClaimRetentionPolicy, at.Child("persistentVolumeClaimRetentionPolicy"))...)
	switch t := spec.VolumeClaimUpdateStrategy.Type; t {
	case "", appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType,
		appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType:
	default:
		faults = append(faults,
			field.NotSupported(at.Child("volumeClaimUpdateStrategy", "type"), t, []appsv1beta1.VolumeClaimUpdateStrategyType{
				appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType, appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType,
			}))
	}
	switch p := spec.PodManagementPolicy; p {
	case "", appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	default:
		faults = append(faults, field.NotSupported(at.Child("podManagementPolicy"), p, []appsv1.PodManagementPolicyType{
			appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement,
		}))
	}
	if s := spec.ScaleStrategy; s != nil {
		faults = append(faults, checkSlotBudget(s.MaxUnavailable, spec, at.Child("scaleStrategy", "maxUnavailable"))...)
	}
	return append(faults, checkStatefulSetStrategy(spec, at.Child("updateStrategy"))...)
}

// StatefulSetUpdate returns the changes that are forbidden.
func StatefulSetUpdate(set, stored *appsv1beta1.StatefulSet) field.ErrorList {
	var faults field.ErrorList
	at, have, had := field.NewPath("spec"), &set.Spec, &stored.Spec
	if !equality.Semantic.DeepEqual(have.Selector, had.Selector) || have.ServiceName != had.ServiceName ||
		inParallel(have) != inParallel(had) {
		faults = append(faults, field.Forbidden(at,
			"only replicas, ordinals, template, updateStrategy, scaleStrategy, reserveOrdinals, lifecycle, "+
				"revisionHistoryLimit, persistentVolumeClaimRetentionPolicy, volumeClaimTemplates and "+
				"volumeClaimUpdateStrategy can be changed"))
	}
	if u := have.UpdateStrategy.RollingUpdate; u != nil &&
		u.PodUpdatePolicy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType &&
		!onlyImages(&had.Template.Spec, &have.Template.Spec) {
		faults = append(faults,
			field.Forbidden(at, "with InPlaceOnly, only the images of containers can be changed in template.spec"))
	}
	return faults
}

func inParallel(spec *appsv1beta1.StatefulSetSpec) bool {
	return spec.PodManagementPolicy == appsv1.ParallelPodManagement
}

func checkOrdinals(spec *appsv1beta1.StatefulSetSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if o := spec.Ordinals; o != nil && o.Start < 0 {
		faults = append(faults, field.Invalid(at.Child("ordinals", "start"), o.Start, "must not be negative"))
	}
	for i := range spec.ReserveOrdinals {
		var invalid *ordinals.ItemError
		if _, err := ordinals.Parse(spec.ReserveOrdinals[i : i+1]); errors.As(err, &invalid) {
			faults = append(faults, field.Invalid(at.Child("reserveOrdinals").Index(i), invalid.Text, invalid.Reason))
		}
	}
	return faults
}

func checkRetention(p *appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if p == nil {
		return nil
	}
	known := []appsv1beta1.PersistentVolumeClaimRetentionPolicyType{
		appsv1beta1.RetainPersistentVolumeClaimRetentionPolicyType,
		appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	if v := p.WhenDeleted; v != "" && !slices.Contains(known, v) {
		faults = append(faults, field.NotSupported(at.Child("whenDeleted"), v, known))
	}
	if v := p.WhenScaled; v != "" && !slices.Contains(known, v) {
		faults = append(faults, field.NotSupported(at.Child("whenScaled"), v, known))
	}
	return faults
}

// checkSlotBudget validates how many pods may be unavailable. Without Parallel it is one: each pod waits for those
// before it.
func checkSlotBudget(v *intstr.IntOrString, spec *appsv1beta1.StatefulSetSpec, at *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	if _, faults := Amount(v, 1, at); len(faults) > 0 {
		return faults
	}
	switch n, _ := scale.AmountOr(v, 0, 1, scale.RoundUp); {
	case n < 1:
		return field.ErrorList{field.Invalid(at, v.String(), "must be at least 1")}
	case !inParallel(spec) && *v != intstr.FromInt32(1):
		return field.ErrorList{field.Invalid(at, v.String(), "must be 1 unless podManagementPolicy is Parallel")}
	}
	return nil
}

func checkStatefulSetStrategy(spec *appsv1beta1.StatefulSetSpec, at *field.Path) field.ErrorList {
	s := &spec.UpdateStrategy
	switch s.Type {
	case "", appsv1.RollingUpdateStatefulSetStrategyType:
	case appsv1.OnDeleteStatefulSetStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{
				field.Invalid(at.Child("rollingUpdate"), s.RollingUpdate, "must be absent with type OnDelete"),
			}
		}
	default:
		return field.ErrorList{field.NotSupported(at.Child("type"), s.Type, []appsv1.StatefulSetUpdateStrategyType{
			appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType,
		})}
	}
	u := s.RollingUpdate
	if u == nil {
		return nil
	}
	var faults field.ErrorList
	at = at.Child("rollingUpdate")
	if n := u.Partition; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("partition"), *n, "must not be negative"))
	}
	if n := u.MinReadySeconds; n != nil && (*n < 0 || *n > appsv1beta1.MaxMinReadySeconds) {
		faults = append(faults, field.Invalid(at.Child("minReadySeconds"), *n, "must be from 0 to 300"))
	}
	faults = append(faults, checkSlotBudget(u.MaxUnavailable, spec, at.Child("maxUnavailable"))...)
	faults = append(faults, checkPodUpdatePolicy(u.PodUpdatePolicy, spec, at.Child("podUpdatePolicy"))...)
	if in := u.InPlaceUpdateStrategy; in != nil && in.GracePeriodSeconds < 0 {
		faults = append(faults, field.Invalid(at.Child("inPlaceUpdateStrategy", "gracePeriodSeconds"),
			in.GracePeriodSeconds, "must not be negative"))
	}
	if u.UnorderedUpdate == nil {
		return faults
	}
	if !inParallel(spec) {
		faults = append(faults, field.Invalid(at.Child("unorderedUpdate"), u.UnorderedUpdate,
			"must be absent unless podManagementPolicy is Parallel"))
	}
	return append(faults,
		Priority(u.UnorderedUpdate.PriorityStrategy, at.Child("unorderedUpdate", "priorityStrategy"))...)
}

func checkPodUpdatePolicy(
	p appsv1beta1.PodUpdateStrategyType, spec *appsv1beta1.StatefulSetSpec, at *field.Path,
) field.ErrorList {
	switch p {
	case "", appsv1beta1.RecreatePodUpdateStrategyType:
		return nil
	case appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, appsv1beta1.InPlaceOnlyPodUpdateStrategyType:
	default:
		return field.ErrorList{field.NotSupported(at, p, []appsv1beta1.PodUpdateStrategyType{
			appsv1beta1.RecreatePodUpdateStrategyType, appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
			appsv1beta1.InPlaceOnlyPodUpdateStrategyType,
		})}
	}
	gates := spec.Template.Spec.ReadinessGates
	if slices.ContainsFunc(gates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == kruise.InPlaceUpdateReady
	}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "template", "spec", "readinessGates"), gates,
		"must contain InPlaceUpdateReady for an update in place")}
}

// StatefulSetExpansion returns the errors of an update where updates of pods expand their claims: claim templates
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

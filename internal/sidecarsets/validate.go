package sidecarsets

import (
	"fmt"
	"regexp"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/scale"
)

// Validate returns what is invalid in a SidecarSet, with its defaults or without. Of containers and volumes it checks
// only what is special to SidecarSets; the rest is for the API server.
func Validate(set *appsv1beta1.SidecarSet) field.ErrorList {
	at, spec := field.NewPath("spec"), &set.Spec
	faults := apivalidation.ValidateObjectMeta(&set.ObjectMeta, false, sidecarSetName, field.NewPath("metadata"))
	faults = append(faults, checkCanary(set)...)
	faults = append(faults, checkSidecarSelectors(spec, at)...)
	faults = append(faults,
		checkInjectRevision(spec.InjectionStrategy.Revision, at.Child("injectionStrategy", "revision"))...)
	faults = append(faults, checkSidecarStrategy(spec, at.Child("updateStrategy"))...)
	faults = append(faults, checkSidecarContainers(spec, at)...)
	faults = append(faults, checkPatchPodMetadata(spec.PatchPodMetadata, at.Child("patchPodMetadata"))...)
	// The version becomes a label value of revisions.
	for _, wrong := range utilvalidation.IsValidLabelValue(spec.CustomVersion) {
		faults = append(faults, field.Invalid(at.Child("customVersion"), spec.CustomVersion, wrong))
	}
	return faults
}

// ValidateUpdate returns the changes that are forbidden.
func ValidateUpdate(set, stored *appsv1beta1.SidecarSet) field.ErrorList {
	var faults field.ErrorList
	if was, is := baseOf(stored), baseOf(set); was != "" && isCanary(set) && was != is {
		at := field.NewPath("metadata", "annotations").Key(appsv1beta1.SidecarSetBaseAnnotation)
		faults = append(faults, field.Forbidden(at, fmt.Sprintf("a canary stays that of its base, which is %s", was)))
	}
	types := map[string]appsv1beta1.SidecarContainerUpgradeType{}
	for i := range stored.Spec.Containers {
		types[stored.Spec.Containers[i].Name] = stored.Spec.Containers[i].UpgradeStrategy.UpgradeType
	}
	for i := range set.Spec.Containers {
		c, at := &set.Spec.Containers[i], field.NewPath("spec", "containers").Index(i)
		was, known := types[c.Name]
		switch {
		case !known:
			faults = append(faults, field.Forbidden(at.Child("name"),
				fmt.Sprintf("container %s cannot be added, as pods that exist would never get it; put it into another SidecarSet",
					c.Name)))
		case isUpgradeType(was) && was != c.UpgradeStrategy.UpgradeType:
			faults = append(faults,
				field.Forbidden(at.Child("upgradeStrategy", "upgradeType"), fmt.Sprintf("is %s for good", was)))
		}
	}
	return faults
}

// isUpgradeType reports whether a type is known. A container of no type or of an unknown one, which acts as
// ColdUpgrade, can be given any.
func isUpgradeType(t appsv1beta1.SidecarContainerUpgradeType) bool {
	return t == appsv1beta1.SidecarContainerColdUpgrade || t == appsv1beta1.SidecarContainerHotUpgrade
}

// sidecarSetName is stricter than the names of other objects: the name is a label value of revisions, and a part of
// their names.
func sidecarSetName(name string, prefix bool) []string {
	if prefix {
		return apivalidation.NameIsDNSSubdomain(name, true)
	}
	var wrong []string
	if !regexp.MustCompile(`^[a-zA-Z0-9-]+$`).MatchString(name) {
		wrong = append(wrong, "must be of letters, digits and -")
	}
	if len(name) > utilvalidation.LabelValueMaxLength {
		wrong = append(wrong, utilvalidation.MaxLenError(utilvalidation.LabelValueMaxLength))
	}
	return wrong
}

func isCanary(set *appsv1beta1.SidecarSet) bool {
	return set.Annotations[appsv1beta1.SidecarSetCanaryAnnotation] == "true"
}

// baseOf returns the base that a canary names; empty for a set that is no canary.
func baseOf(set *appsv1beta1.SidecarSet) string {
	if !isCanary(set) {
		return ""
	}
	return set.Annotations[appsv1beta1.SidecarSetBaseAnnotation]
}

func checkCanary(set *appsv1beta1.SidecarSet) field.ErrorList {
	base := baseOf(set)
	if base == "" {
		return nil
	}
	var faults field.ErrorList
	if base == set.Name {
		at := field.NewPath("metadata", "annotations").Key(appsv1beta1.SidecarSetBaseAnnotation)
		faults = append(faults, field.Invalid(at, base, "a set is not its own canary"))
	}
	if t := set.Spec.UpdateStrategy.Type; t != appsv1beta1.NotUpdateSidecarSetStrategyType {
		faults = append(faults,
			field.Invalid(field.NewPath("spec", "updateStrategy", "type"), t, "must be NotUpdate in a canary"))
	}
	return faults
}

func checkSidecarSelectors(spec *appsv1beta1.SidecarSetSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if spec.Selector == nil {
		faults = append(faults, field.Required(at.Child("selector"), ""))
	} else {
		faults = append(faults,
			checkSelectsSome(spec.Selector, at.Child("selector"), "an empty selector would select every pod")...)
	}
	if spec.NamespaceSelector != nil {
		faults = append(faults,
			checkSelectsSome(spec.NamespaceSelector, at.Child("namespaceSelector"), "leave it out for all namespaces")...)
	}
	return faults
}

func checkSelectsSome(selector *metav1.LabelSelector, at *field.Path, ifEmpty string) field.ErrorList {
	if isEmpty(selector) {
		return field.ErrorList{field.Invalid(at, selector, "must not be empty: "+ifEmpty)}
	}
	return validation.LabelSelector(selector, at)
}

func checkInjectRevision(pin *appsv1beta1.SidecarSetInjectRevision, at *field.Path) field.ErrorList {
	if pin == nil {
		return nil
	}
	var faults field.ErrorList
	if pin.RevisionName == nil && pin.CustomVersion == nil {
		faults = append(faults, field.Required(at, "one of revisionName and customVersion"))
	}
	always, partial := appsv1beta1.AlwaysSidecarSetInjectRevisionPolicy, appsv1beta1.PartialSidecarSetInjectRevisionPolicy
	if p := pin.Policy; p != "" && p != always && p != partial {
		faults = append(faults,
			field.NotSupported(at.Child("policy"), p, []appsv1beta1.SidecarSetInjectRevisionPolicy{always, partial}))
	}
	return faults
}

// checkSidecarStrategy validates a strategy only where pods are updated. An invalid strategy of an unknown type is a
// warning, because the reference accepts it.
func checkSidecarStrategy(spec *appsv1beta1.SidecarSetSpec, at *field.Path) field.ErrorList {
	if t := spec.UpdateStrategy.Type; t != "" && t != appsv1beta1.RollingUpdateSidecarSetStrategyType {
		return checkHoldback(spec, at)
	}
	return checkRolling(spec, at)
}

// checkHoldback validates what decides which new pods get a pinned revision. No new pod could be created where it
// cannot be resolved, whether or not running pods are updated.
func checkHoldback(spec *appsv1beta1.SidecarSetSpec, at *field.Path) field.ErrorList {
	pin := spec.InjectionStrategy.Revision
	if pin == nil || pin.Policy != appsv1beta1.PartialSidecarSetInjectRevisionPolicy {
		return nil
	}
	var faults field.ErrorList
	if s := spec.UpdateStrategy.Selector; s != nil {
		faults = validation.LabelSelector(s, at.Child("selector"))
	}
	if p := spec.UpdateStrategy.Partition; p != nil && p.Type == intstr.String {
		if _, err := scale.Amount(*p, 1, scale.RoundUp); err != nil {
			faults = append(faults, field.Invalid(at.Child("partition"), p.StrVal,
				"must be a percentage as 20%, because injectionStrategy.revision.policy is Partial"))
		}
	}
	return faults
}

// checkRolling validates a strategy by which pods are updated.
func checkRolling(spec *appsv1beta1.SidecarSetSpec, at *field.Path) field.ErrorList {
	u := spec.UpdateStrategy
	var faults field.ErrorList
	for i := range spec.InitContainers {
		if isNative(&spec.InitContainers[i]) {
			faults = append(faults,
				field.Required(at, fmt.Sprintf("type NotUpdate, as %s is a native sidecar, which cannot be updated in a pod",
					spec.InitContainers[i].Name)))
			break
		}
	}
	if u.Selector != nil {
		if p := u.Partition; p != nil && (p.Type == intstr.String || p.IntVal != 0) {
			faults = append(faults, field.Invalid(at, p.String(), "partition and selector exclude each other"))
		}
		faults = append(faults, checkSelectsSome(u.Selector, at.Child("selector"), "leave it out for all pods")...)
	}
	faults = append(faults, checkSidecarAmount(u.Partition, at.Child("partition"))...)
	faults = append(faults, checkSidecarAmount(u.MaxUnavailable, at.Child("maxUnavailable"))...)
	faults = append(faults, validation.Priority(u.PriorityStrategy, at.Child("priorityStrategy"))...)
	return append(faults, validation.Scatter(u.ScatterStrategy, at.Child("scatterStrategy"))...)
}

// checkSidecarAmount accepts any number of pods, and any percentage without a fraction.
func checkSidecarAmount(v *intstr.IntOrString, at *field.Path) field.ErrorList {
	if v != nil && v.Type == intstr.String && !regexp.MustCompile(`^[0-9]+%$`).MatchString(v.StrVal) {
		return field.ErrorList{field.Invalid(at, v.StrVal, "must be a number, or a percentage as 20%")}
	}
	_, faults := validation.Amount(v, 100, at)
	return faults
}

func checkPatchPodMetadata(patches []appsv1beta1.SidecarSetPatchPodMetadata, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	seen := map[string]bool{}
	for i := range patches {
		here, annotations := at.Index(i).Child("annotations"), patches[i].Annotations
		if len(annotations) == 0 {
			faults = append(faults, field.Required(here, "annotations to write"))
		}
		faults = append(faults, apivalidation.ValidateAnnotations(annotations, here)...)
		for _, key := range sortedKeys(annotations) {
			if seen[key] {
				faults = append(faults, field.Duplicate(here.Key(key), key))
			}
			seen[key] = true
		}
	}
	return faults
}

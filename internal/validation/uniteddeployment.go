package validation

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// MaxSubsets is the greatest number of subsets of a UnitedDeployment.
const MaxSubsets = 512

// maxUnitedName leaves room for a dash and a hash in the name of a revision, which is the value of a label.
const maxUnitedName = utilvalidation.LabelValueMaxLength - 11

// UnitedDeployment returns what is invalid in a UnitedDeployment with its defaults. What the API server checks in a pod
// template, and what the schema of the kind enumerates, is left to the API server.
func UnitedDeployment(u *appsv1beta1.UnitedDeployment) field.ErrorList {
	at, spec := field.NewPath("spec"), &u.Spec
	faults := apivalidation.ValidateObjectMeta(
		&u.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if len(u.Name) > maxUnitedName {
		faults = append(faults, field.TooLongMaxLength(field.NewPath("metadata", "name"), u.Name, maxUnitedName))
	}
	if n := spec.Replicas; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("replicas"), *n, "must not be negative"))
	}
	if n := spec.RevisionHistoryLimit; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("revisionHistoryLimit"), *n, "must not be negative"))
	}
	selects := checkUnitedSelector(spec.Selector, at.Child("selector"))
	faults = append(faults, selects...)
	faults = append(faults, checkSubsetTemplate(u, len(selects) == 0, at.Child("template"))...)
	faults = append(faults, checkSubsetNames(&spec.Topology, at.Child("topology", "subsets"))...)
	faults = append(faults, checkSubsets(u, at.Child("topology", "subsets"))...)
	faults = append(faults, checkSubsetNumbers(spec, at.Child("topology", "subsets"))...)
	faults = append(faults, checkScheduleStrategy(spec, at.Child("topology", "scheduleStrategy"))...)
	return append(faults, checkManualUpdate(spec, at.Child("updateStrategy"))...)
}

// UnitedDeploymentUnusable returns the first fault for which a reconciler can do nothing at all; nil for none. All
// other faults have a safe reading.
func UnitedDeploymentUnusable(u *appsv1beta1.UnitedDeployment) error {
	at := field.NewPath("spec")
	faults := checkUnitedSelector(u.Spec.Selector, at.Child("selector"))
	if t := Templates(&u.Spec.Template); len(t) != 1 {
		faults = append(faults, checkOneTemplate(t, at.Child("template"))...)
	}
	faults = append(faults, checkSubsetNames(&u.Spec.Topology, at.Child("topology", "subsets"))...)
	if len(faults) == 0 {
		return nil
	}
	return faults[0]
}

// UnitedDeploymentUpdate returns the changes that are forbidden.
func UnitedDeploymentUpdate(u, stored *appsv1beta1.UnitedDeployment) field.ErrorList {
	var faults field.ErrorList
	at := field.NewPath("spec")
	if !equality.Semantic.DeepEqual(u.Spec.Selector, stored.Spec.Selector) {
		faults = append(faults, field.Forbidden(at.Child("selector"), "the selector cannot be changed"))
	}
	for i := range u.Spec.Topology.Subsets {
		is, here := &u.Spec.Topology.Subsets[i], at.Child("topology", "subsets").Index(i)
		was := slices.IndexFunc(stored.Spec.Topology.Subsets, func(s appsv1beta1.Subset) bool { return s.Name == is.Name })
		if was < 0 {
			continue
		}
		if !equality.Semantic.DeepEqual(is.NodeSelectorTerm, stored.Spec.Topology.Subsets[was].NodeSelectorTerm) {
			faults = append(faults, field.Forbidden(here.Child("nodeSelectorTerm"), "the term of a subset cannot be changed"))
		}
		if !equality.Semantic.DeepEqual(is.Tolerations, stored.Spec.Topology.Subsets[was].Tolerations) {
			faults = append(faults, field.Forbidden(here.Child("tolerations"), "the tolerations of a subset cannot be changed"))
		}
	}
	return append(faults, checkTemplateUpdate(&u.Spec.Template, &stored.Spec.Template, at.Child("template"))...)
}

func checkTemplateUpdate(is, was *appsv1beta1.SubsetTemplate, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if a, b := is.StatefulSetTemplate, was.StatefulSetTemplate; a != nil && b != nil {
		fixed := *b.Spec.DeepCopy()
		fixed.Replicas, fixed.Template, fixed.UpdateStrategy = a.Spec.Replicas, a.Spec.Template, a.Spec.UpdateStrategy
		fixed.PersistentVolumeClaimRetentionPolicy, fixed.MinReadySeconds,
			fixed.Ordinals = a.Spec.PersistentVolumeClaimRetentionPolicy, a.Spec.MinReadySeconds, a.Spec.Ordinals
		if !equality.Semantic.DeepEqual(a.Spec, fixed) {
			faults = append(faults, field.Forbidden(at.Child("statefulSetTemplate", "spec"), "only replicas, template, "+
				"updateStrategy, persistentVolumeClaimRetentionPolicy, minReadySeconds and ordinals can be changed"))
		}
	}
	if a, b := is.AdvancedStatefulSetTemplate, was.AdvancedStatefulSetTemplate; a != nil && b != nil {
		fixed := *b.Spec.DeepCopy()
		fixed.Replicas, fixed.Template, fixed.UpdateStrategy = a.Spec.Replicas, a.Spec.Template, a.Spec.UpdateStrategy
		if !equality.Semantic.DeepEqual(a.Spec, fixed) {
			faults = append(faults, field.Forbidden(at.Child("advancedStatefulSetTemplate", "spec"),
				"only replicas, template and updateStrategy can be changed"))
		}
	}
	return faults
}

func checkUnitedSelector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return field.ErrorList{field.Invalid(at, "{}", "must not be empty: an empty selector selects every pod")}
	}
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
}

func checkOneTemplate(all []Template, at *field.Path) field.ErrorList {
	switch len(all) {
	case 0:
		return field.ErrorList{
			field.Required(at,
				"must have one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate and deploymentTemplate"),
		}
	case 1:
		return nil
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Field
	}
	return field.ErrorList{field.Invalid(at, strings.Join(names, ", "), "must have only one template")}
}

func checkSubsetTemplate(u *appsv1beta1.UnitedDeployment, selects bool, at *field.Path) field.ErrorList {
	all := Templates(&u.Spec.Template)
	faults := checkOneTemplate(all, at)
	for _, t := range all {
		here := at.Child(t.Field)
		if t.replicas {
			faults = append(faults, field.Forbidden(here.Child("spec", "replicas"), "must not be set: the topology decides"))
		}
		if t.partition {
			faults = append(faults, field.Forbidden(here.Child("spec", "updateStrategy", "rollingUpdate", "partition"),
				"must not be set: spec.updateStrategy decides"))
		}
		selector, err := metav1.LabelSelectorAsSelector(u.Spec.Selector)
		if err != nil || !selects {
			continue
		}
		// A CloneSet gets the labels of the selector with those of the subset, and OpenKruise asks for no others.
		if t.Field != cloneSetTemplate && !selector.Matches(labels.Set(t.Metadata.Labels)) {
			faults = append(faults,
				field.Invalid(here.Child("metadata", "labels"), t.Metadata.Labels, "must match spec.selector"))
		}
		if !selector.Matches(labels.Set(t.Pod.Labels)) {
			faults = append(faults,
				field.Invalid(here.Child("spec", "template", "metadata", "labels"), t.Pod.Labels, "must match spec.selector"))
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return checkWorkload(u, at)
}

// checkWorkload checks what the reconciler of the workloads would reject.
func checkWorkload(u *appsv1beta1.UnitedDeployment, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	add := func(template string, found field.ErrorList) {
		for _, fault := range found {
			if strings.HasPrefix(fault.Field, "spec.") && !strings.HasPrefix(fault.Field, "spec.selector") {
				fault.Field = at.Child(template).String() + "." + fault.Field
				faults = append(faults, fault)
			}
		}
	}
	if t := u.Spec.Template.CloneSetTemplate; t != nil {
		set := &appsv1beta1.CloneSet{Spec: *t.Spec.DeepCopy()}
		set.Spec.Replicas, set.Spec.Selector = nil, u.Spec.Selector
		add(cloneSetTemplate, CloneSet(set))
	}
	if t := u.Spec.Template.AdvancedStatefulSetTemplate; t != nil {
		set := &appsv1beta1.StatefulSet{Spec: *t.Spec.DeepCopy()}
		set.Spec.Selector = u.Spec.Selector
		add("advancedStatefulSetTemplate", StatefulSet(set))
	}
	if t := u.Spec.Template.StatefulSetTemplate; t != nil {
		add("statefulSetTemplate",
			RunsForever(&t.Spec.Template.Spec, "StatefulSet", field.NewPath("spec", "template", "spec")))
	}
	if t := u.Spec.Template.DeploymentTemplate; t != nil {
		add("deploymentTemplate",
			RunsForever(&t.Spec.Template.Spec, "Deployment", field.NewPath("spec", "template", "spec")))
	}
	return faults
}

func checkSubsetNames(t *appsv1beta1.Topology, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if n := len(t.Subsets); n > MaxSubsets {
		return field.ErrorList{field.TooMany(at, n, MaxSubsets)}
	}
	seen := map[string]bool{}
	for i := range t.Subsets {
		name, here := t.Subsets[i].Name, at.Index(i).Child("name")
		switch {
		case name == "":
			faults = append(faults, field.Required(here, ""))
		case seen[name]:
			faults = append(faults, field.Duplicate(here, name))
		}
		seen[name] = true
		for _, why := range utilvalidation.IsDNS1123Label(name) {
			if name != "" {
				faults = append(faults, field.Invalid(here, name, why))
			}
		}
	}
	return faults
}

func checkScheduleStrategy(spec *appsv1beta1.UnitedDeploymentSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	a := spec.Topology.ScheduleStrategy.Adaptive
	if a == nil {
		return nil
	}
	if n := a.RescheduleCriticalSeconds; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("adaptive", "rescheduleCriticalSeconds"), *n, "must not be negative"))
	}
	if n := a.UnschedulableDuration; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(at.Child("adaptive", "unschedulableDuration"), *n, "must not be negative"))
	}
	if a.ReserveUnschedulablePods &&
		(spec.Template.StatefulSetTemplate != nil || spec.Template.AdvancedStatefulSetTemplate != nil) {
		faults = append(faults, field.Forbidden(at.Child("adaptive", "reserveUnschedulablePods"),
			"must not be set with the template of a StatefulSet"))
	}
	return faults
}

func checkManualUpdate(spec *appsv1beta1.UnitedDeploymentSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if spec.UpdateStrategy.ManualUpdate == nil {
		return faults
	}
	at = at.Child("manualUpdate", "partitions")
	for _, name := range slices.Sorted(maps.Keys(spec.UpdateStrategy.ManualUpdate.Partitions)) {
		n := spec.UpdateStrategy.ManualUpdate.Partitions[name]
		known := slices.ContainsFunc(spec.Topology.Subsets, func(s appsv1beta1.Subset) bool { return s.Name == name })
		switch {
		case !known:
			faults = append(faults, field.Invalid(at, name, "must be the name of a subset"))
		case n < 0:
			faults = append(faults, field.Invalid(at.Key(name), n, "must not be negative"))
		case n > 0 && spec.Template.DeploymentTemplate != nil:
			faults = append(faults,
				field.Forbidden(at.Key(name), "must be 0 with a deploymentTemplate: a Deployment has no partition"))
		}
	}
	return faults
}

package distribution

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// maxNames is how many names an error lists.
const maxNames = 10

// Validate returns what is invalid in a distribution. One that names a reserved namespace as a target is invalid;
// kube-system and kube-public may be named, and get no copy.
func Validate(d *v1beta1.ResourceDistribution, reserved string) field.ErrorList {
	at := field.NewPath("spec")
	faults := append(checkResource(d.Spec.Resource.Raw, at.Child("resource")),
		checkTargets(&d.Spec.Targets, at.Child("targets"))...)
	if reserved != "" && names(d.Spec.Targets.IncludedNamespaces)[reserved] {
		faults = append(faults,
			field.Forbidden(at.Child("targets", "includedNamespaces"), reserved+" is reserved, and gets no copy"))
	}
	return faults
}

// ValidateUpdate returns the changes that are forbidden: the kind and the name of the resource cannot change.
func ValidateUpdate(d, stored *v1beta1.ResourceDistribution) field.ErrorList {
	now, err := Read(d.Spec.Resource.Raw)
	before, failed := Read(stored.Spec.Resource.Raw)
	if err != nil || failed != nil {
		return nil // Validate reports what is new
	}
	at := field.NewPath("spec", "resource")
	var faults field.ErrorList
	if now.GetKind() != before.GetKind() {
		faults = append(faults, field.Invalid(at, now.GetKind(), "apiVersion and kind are immutable"))
	}
	if now.GetName() != before.GetName() {
		faults = append(faults, field.Invalid(at, now.GetName(), "metadata.name is immutable"))
	}
	return faults
}

func checkResource(raw []byte, at *field.Path) field.ErrorList {
	if text := bytes.TrimSpace(raw); len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return field.ErrorList{field.Invalid(at, "", "must not be empty")}
	}
	object, err := decode(raw)
	var kind *KindError
	switch {
	case errors.As(err, &kind) && kind.Kind != "":
		return field.ErrorList{field.Invalid(at, kind.Kind, kind.Error())}
	case kind != nil:
		return field.ErrorList{field.InternalError(at, kind)}
	case err != nil:
		return field.ErrorList{field.Invalid(at, "", err.Error())}
	}
	return append(checkMetadata(object, at.Child("metadata")), checkContent(object, at)...)
}

// checkMetadata validates what copies have of the metadata.
func checkMetadata(o metav1.Object, at *field.Path) field.ErrorList {
	copied := &metav1.ObjectMeta{
		Name: o.GetName(), Labels: o.GetLabels(), Annotations: o.GetAnnotations(), Finalizers: o.GetFinalizers(),
		OwnerReferences: o.GetOwnerReferences(),
	}
	faults := apivalidation.ValidateObjectMeta(copied, false, apivalidation.NameIsDNSSubdomain, at)
	if metav1.GetControllerOfNoCopy(o) != nil {
		faults = append(faults, field.Invalid(at.Child("ownerReferences"), true,
			"must not have a controller: the ResourceDistribution controls the copies"))
	}
	return faults
}

// checkTargets validates names and the selector.
func checkTargets(t *v1beta1.ResourceDistributionTargets, at *field.Path) field.ErrorList {
	faults := checkNames(t.IncludedNamespaces, at.Child("includedNamespaces"))
	faults = append(faults, checkNames(t.ExcludedNamespaces, at.Child("excludedNamespaces"))...)
	excluded := names(t.ExcludedNamespaces)
	both := slices.DeleteFunc(slices.Sorted(maps.Keys(names(t.IncludedNamespaces))), func(name string) bool {
		return !excluded[name]
	})
	if len(both) > 0 {
		first := strings.Join(both[:min(len(both), maxNames)], ", ")
		faults = append(faults, field.Invalid(at, first, "a namespace must not be both included and excluded"))
	}
	if _, err := metav1.LabelSelectorAsSelector(&t.NamespaceSelector); err != nil {
		faults = append(faults, field.Invalid(at.Child("namespaceSelector"), "", err.Error()))
	}
	return faults
}

func checkNames(list v1beta1.ResourceDistributionTargetNamespaces, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	for _, n := range list.List {
		if texts := validation.IsDNS1123Label(n.Name); len(texts) > 0 {
			faults = append(faults, field.Invalid(at, n.Name, strings.Join(texts, ", ")))
		}
	}
	return faults
}

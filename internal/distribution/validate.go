package distribution

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Validate returns what is invalid in a distribution. One that names a reserved namespace as a target is invalid;
// kube-system and kube-public may be named, and get no copy.
func Validate(d *v1beta1.ResourceDistribution, reserved ...string) field.ErrorList {
	at := field.NewPath("spec")
	faults := append(checkResource(d.Spec.Resource.Raw, at.Child("resource")),
		checkTargets(&d.Spec.Targets, at.Child("targets"))...)
	included := names(d.Spec.Targets.IncludedNamespaces)
	for _, name := range reserved {
		if name != "" && included[name] {
			faults = append(faults,
				field.Forbidden(at.Child("targets", "includedNamespaces"), name+" is reserved, and gets no copy"))
		}
	}
	return faults
}

// ValidateUpdate returns the changes that are forbidden: the kind and the name of the resource cannot change.
func ValidateUpdate(d, stored *v1beta1.ResourceDistribution) field.ErrorList {
	now, err := decode(d.Spec.Resource.Raw)
	before, failed := decode(stored.Spec.Resource.Raw)
	if err != nil || failed != nil {
		return nil // Validate reports what is new
	}
	at := field.NewPath("spec", "resource")
	var faults field.ErrorList
	if a, b := now.GetObjectKind().GroupVersionKind(), before.GetObjectKind().GroupVersionKind(); a != b {
		faults = append(faults, field.Invalid(at, a.Kind, "apiVersion and kind are immutable"))
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
	faults := checkMetadata(object, at.Child("metadata"))
	switch o := object.(type) {
	case *corev1.Secret:
		faults = append(faults, checkSecret(o, at)...)
	case *corev1.ConfigMap:
		faults = append(faults, checkConfigMap(o, at)...)
	}
	return faults
}

// checkMetadata validates what copies have of the metadata.
func checkMetadata(o metav1.Object, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if o.GetName() == "" {
		faults = append(faults, field.Required(at.Child("name"), "must be the name of the copies"))
	} else {
		for _, text := range apivalidation.NameIsDNSSubdomain(o.GetName(), false) {
			faults = append(faults, field.Invalid(at.Child("name"), o.GetName(), text))
		}
	}
	faults = append(faults, metav1validation.ValidateLabels(o.GetLabels(), at.Child("labels"))...)
	faults = append(faults, apivalidation.ValidateAnnotations(o.GetAnnotations(), at.Child("annotations"))...)
	faults = append(faults, apivalidation.ValidateFinalizers(o.GetFinalizers(), at.Child("finalizers"))...)
	for i, ref := range o.GetOwnerReferences() {
		switch at := at.Child("ownerReferences").Index(i); {
		case ref.Controller != nil && *ref.Controller:
			faults = append(faults,
				field.Invalid(at.Child("controller"), true, "must not be true: the ResourceDistribution controls the copies"))
		case ref.UID == "" || ref.Name == "" || ref.Kind == "" || ref.APIVersion == "":
			faults = append(faults, field.Invalid(at, ref.Name, "must have apiVersion, kind, name and uid"))
		}
	}
	return faults
}

// checkTargets validates names and the selector.
func checkTargets(t *v1beta1.ResourceDistributionTargets, at *field.Path) field.ErrorList {
	faults := checkNames(t.IncludedNamespaces, at.Child("includedNamespaces"))
	faults = append(faults, checkNames(t.ExcludedNamespaces, at.Child("excludedNamespaces"))...)
	excluded := names(t.ExcludedNamespaces)
	var both []string
	for _, n := range t.IncludedNamespaces.List {
		if excluded[n.Name] && !slices.Contains(both, n.Name) {
			both = append(both, n.Name)
		}
	}
	if len(both) > 0 {
		faults = append(faults, field.Invalid(at, bounded(both), "a namespace must not be both included and excluded"))
	}
	if _, err := metav1.LabelSelectorAsSelector(&t.NamespaceSelector); err != nil {
		faults = append(faults, field.Invalid(at.Child("namespaceSelector"), "", brief(err.Error())))
	}
	return faults
}

// bounded joins the first names.
func bounded(all []string) string {
	const most = 10
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
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

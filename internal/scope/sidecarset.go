package scope

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// sidecarSelections returns the pods that a stored set selects; none for one of which not even the name can be read.
func sidecarSelections(raw *unstructured.Unstructured) []Selection {
	set, _, err := Decode(raw)
	if err != nil {
		return nil
	}
	return selections(set)
}

// SelectionOf returns the pods that a set selects, paused or not.
func SelectionOf(set *appsv1beta1.SidecarSet) Selection {
	return Selection{Object: set.Name, Pod: set.Spec.Selector, Namespace: set.Spec.NamespaceSelector, Ignore: Ignores(set)}
}

// selections returns none for a set whose injection is paused.
func selections(set *appsv1beta1.SidecarSet) []Selection {
	if set.Spec.InjectionStrategy.Paused {
		return nil
	}
	return []Selection{SelectionOf(set)}
}

// Widens reports whether a change of a set may select pods that it did not select before, or makes pods fail that it
// ignored. Before is nil for a new set.
func Widens(now, before *appsv1beta1.SidecarSet) bool {
	is := selections(now)
	if len(is) == 0 || is[0].Read().Never {
		return false
	}
	return before == nil || !equality.Semantic.DeepEqual(is, selections(before))
}

// Ignores reports whether the owner of a set prefers pods without it to no pods.
func Ignores(set metav1.Object) bool {
	return set.GetAnnotations()[appsv1beta1.SidecarSetInjectionFailurePolicyAnnotation] ==
		string(admissionregistrationv1.Ignore)
}

// Kind is that of SidecarSets.
func Kind() schema.GroupVersionKind { return appsv1beta1.GroupVersion.WithKind("SidecarSet") }

// Decode decodes a stored set. Invalid is why the spec cannot be decoded; the set then has only its metadata and what
// of the selectors can be decoded.
func Decode(raw *unstructured.Unstructured) (set *appsv1beta1.SidecarSet, invalid, err error) {
	set, invalid, err = stored.Decode[appsv1beta1.SidecarSet](raw)
	if err != nil || invalid == nil {
		return set, invalid, err
	}
	set.Spec.Selector = selectorAt(raw, "selector")
	set.Spec.NamespaceSelector = selectorAt(raw, "namespaceSelector")
	paused, _, _ := stored.Value[bool](raw, "spec", "injectionStrategy", "paused")
	set.Spec.InjectionStrategy.Paused = paused
	return set, invalid, nil
}

// selectorAt returns nil if the field is missing or cannot be decoded.
func selectorAt(raw *unstructured.Unstructured, field string) *metav1.LabelSelector {
	content, found, err := stored.Value[map[string]any](raw, "spec", field)
	if !found || err != nil {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector) != nil {
		return nil
	}
	return selector
}

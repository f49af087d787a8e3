package scope

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// Kind is that of SidecarSets.
func Kind() schema.GroupVersionKind { return appsv1beta1.GroupVersion.WithKind("SidecarSet") }

// Decode gives a set as it is stored. Of one that cannot be decoded there is what says which pods it is about, as far as
// that can be.
func Decode(raw *unstructured.Unstructured) (set *appsv1beta1.SidecarSet, malformed, err error) {
	set, malformed, err = stored.Decode[appsv1beta1.SidecarSet](raw)
	if err != nil || malformed == nil {
		return set, malformed, err
	}
	set.Spec.Selector = selectorAt(raw, "selector")
	set.Spec.NamespaceSelector = selectorAt(raw, "namespaceSelector")
	paused, _, _ := unstructured.NestedBool(raw.Object, "spec", "injectionStrategy", "paused")
	set.Spec.InjectionStrategy.Paused = paused
	return set, malformed, nil
}

// selectorAt is nil where there is none, or nothing like one.
func selectorAt(raw *unstructured.Unstructured, field string) *metav1.LabelSelector {
	content, found, err := unstructured.NestedMap(raw.Object, "spec", field)
	if !found || err != nil {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector) != nil {
		return nil
	}
	return selector
}

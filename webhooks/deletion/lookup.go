package deletion

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/protection"
)

// The manager lists pods and claims of one namespace at a time, live: no informer of claims is needed.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=list

// lookup reads what a decision depends on. It serves one review.
type lookup struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the review
	reader client.Reader
	page   int64
	kind   protection.Kind
	under  *object
	// confirmed is the live object, once it was read.
	confirmed client.Object
}

// count counts the active dependents of the object under review.
func (l *lookup) count(d protection.Dependents) (protection.Count, error) {
	if err := l.confirm(); err != nil {
		return protection.Count{}, err
	}
	switch d {
	case protection.Pods:
		return l.pods()
	case protection.Claims:
		return l.claims()
	case protection.Instances:
		return l.instances()
	case protection.Replicas:
	}
	return protection.Count{}, fmt.Errorf("cannot count %s", d)
}

// confirm reads the object under review. A review could be made up to learn what is in a namespace: its author would
// have to know the UID of an object that carries the label.
func (l *lookup) confirm() error {
	if l.confirmed != nil {
		return nil
	}
	live := l.empty()
	if err := l.reader.Get(l.ctx, client.ObjectKey{Name: l.under.Name}, live); err != nil {
		return fmt.Errorf("read %s: %w", l.kind.Kind, err)
	}
	key := kruise.DeletionProtectionKey
	if live.GetUID() != l.under.UID || live.GetLabels()[key] != l.under.Labels[key] {
		return fmt.Errorf("the %s changed during the review", l.kind.Kind)
	}
	l.confirmed = live
	return nil
}

// empty is what the object under review is read into. Of a definition the spec is needed, of a namespace the metadata
// alone.
func (l *lookup) empty() client.Object {
	gvk := schema.GroupVersionKind{Group: l.kind.Group, Version: "v1", Kind: l.kind.Kind}
	if gvk.Group != "" {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(gvk)
		return live
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	return live
}

// namespaceTerminating reads the namespace of an object that would be refused otherwise.
func (l *lookup) namespaceTerminating() (bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := l.reader.Get(l.ctx, client.ObjectKey{Name: l.under.Namespace}, namespace); err != nil {
		return false, err //nolint:wrapcheck // the verdict names what was read
	}
	return namespace.DeletionTimestamp != nil, nil
}

// pods counts pods that have not ended: the API server leaves out those that have.
func (l *lookup) pods() (protection.Count, error) {
	running := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
	return l.metadata(corev1.SchemeGroupVersion.WithKind("PodList"), client.InNamespace(l.under.Name),
		client.MatchingFieldsSelector{Selector: running})
}

// instances counts the custom resources of the live definition, and not of what the review says of it.
func (l *lookup) instances() (protection.Count, error) {
	definition, ok := l.confirmed.(*unstructured.Unstructured)
	if !ok {
		return protection.Count{}, errors.New("the definition was not read")
	}
	gvk, err := instancesOf(definition)
	if err != nil {
		return protection.Count{}, err
	}
	count, err := l.metadata(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return count, fmt.Errorf("%s: %w", gvk, err)
	}
	return count, nil
}

// instancesOf returns the kind of the instances in the stored version, or in another one where that is not served.
func instancesOf(definition *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	gvk := schema.GroupVersionKind{Group: group, Kind: kind}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		served, _ := version["served"].(bool)
		stored, _ := version["storage"].(bool)
		if served && (stored || gvk.Version == "") {
			gvk.Version = name
		}
	}
	if gvk.Group == "" || gvk.Kind == "" || gvk.Version == "" {
		return gvk, fmt.Errorf("no version of %s is served", gvk.GroupKind())
	}
	return gvk, nil
}

// metadata counts objects that are not terminating by their metadata.
func (l *lookup) metadata(list schema.GroupVersionKind, opts ...client.ListOption) (protection.Count, error) {
	return l.pages(func() client.ObjectList {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(list)
		return page
	}, func(page client.ObjectList) (n int64) {
		items := page.(*metav1.PartialObjectMetadataList).Items //nolint:forcetypeassert // it was made above
		for i := range items {
			if items[i].DeletionTimestamp == nil {
				n++
			}
		}
		return n
	}, opts...)
}

// claims counts bound claims, whose phase no selector of the API server knows.
func (l *lookup) claims() (protection.Count, error) {
	return l.pages(func() client.ObjectList { return &corev1.PersistentVolumeClaimList{} },
		func(page client.ObjectList) (n int64) {
			items := page.(*corev1.PersistentVolumeClaimList).Items //nolint:forcetypeassert // it was made above
			for i := range items {
				if items[i].DeletionTimestamp == nil && items[i].Status.Phase == corev1.ClaimBound {
					n++
				}
			}
			return n
		}, client.InNamespace(l.under.Name))
}

// pages lists up to the end of the first page that has active objects. Each page is a new list: a decoder would leave
// what the page before it has.
func (l *lookup) pages(
	empty func() client.ObjectList, active func(client.ObjectList) int64, opts ...client.ListOption,
) (protection.Count, error) {
	for next := ""; ; {
		page := empty()
		if err := l.reader.List(l.ctx, page,
			append([]client.ListOption{client.Limit(l.page), client.Continue(next)}, opts...)...); err != nil {
			return protection.Count{}, err //nolint:wrapcheck // the verdict names what was listed
		}
		next = page.GetContinue()
		if n := active(page); n > 0 || next == "" {
			return protection.Count{N: n, AtLeast: next != ""}, nil
		}
	}
}

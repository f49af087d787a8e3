package applied

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Writer applies objects.
type Writer struct {
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Manager is the name under which the fields are applied.
	Manager string
}

// Apply writes the fields of a rendered object, and takes them over from other managers. It returns the object as it is
// stored. An object with a list that API servers accept and cannot apply, such as a variable that a container has
// twice, is created or updated.
func (w Writer) Apply(ctx context.Context, rendered *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer, err := w.apply(ctx, rendered)
	switch {
	case err != nil && strings.Contains(err.Error(), duplicates):
		return w.put(ctx, rendered)
	case err != nil || !w.wasPut(answer):
		return answer, err
	}
	if err := w.own(ctx, answer, sets.New(w.Manager)); err != nil {
		return answer, err
	}
	return w.apply(ctx, rendered)
}

// duplicates are the words of an API server for a list that has two entries of one key.
const duplicates = "duplicate entries for key"

func (w Writer) apply(ctx context.Context, rendered *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := rendered.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode workload: %w", err)
	}
	answer := empty(rendered)
	answer.SetNamespace(rendered.GetNamespace())
	answer.SetName(rendered.GetName())
	patch := client.RawPatch(types.ApplyPatchType, data)
	return answer, w.Client.Patch(ctx, answer, patch, client.FieldOwner(w.Manager), client.ForceOwnership)
}

// put creates or updates an object: it replaces the fields of the spec that are rendered, and adds the metadata.
func (w Writer) put(ctx context.Context, rendered *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o := empty(rendered)
	switch err := w.Live.Get(ctx, client.ObjectKeyFromObject(rendered), o); {
	case apierrors.IsNotFound(err) && rendered.GetUID() == "":
		o = rendered.DeepCopy()
		return o, w.Client.Create(ctx, o, client.FieldOwner(w.Manager))
	case err != nil:
		return o, err
	case rendered.GetUID() != "" && rendered.GetUID() != o.GetUID():
		return o, apierrors.NewConflict(schema.GroupResource{Group: o.GroupVersionKind().Group, Resource: o.GetKind()},
			o.GetName(), errReplaced)
	}
	spec, _, _ := unstructured.NestedMap(rendered.Object, "spec")
	for field, value := range spec {
		if err := unstructured.SetNestedField(o.Object, value, "spec", field); err != nil {
			return o, err
		}
	}
	o.SetLabels(union(o.GetLabels(), rendered.GetLabels()))
	o.SetAnnotations(union(o.GetAnnotations(), rendered.GetAnnotations()))
	return o, w.Client.Update(ctx, o, client.FieldOwner(w.Manager))
}

var errReplaced = errors.New("another object has taken its name")

func union(stored, rendered map[string]string) map[string]string {
	if stored == nil {
		return rendered
	}
	maps.Copy(stored, rendered)
	return stored
}

// wasPut reports whether fields of an object were written by put, so that an apply does not remove them.
func (w Writer) wasPut(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == w.Manager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	})
}

func empty(like *unstructured.Unstructured) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(like.GroupVersionKind())
	return o
}

// Inherit makes the fields of an object that another program wrote on behalf of the same owner those of the manager, so
// that the next apply removes the ones that are no longer rendered. Caches have no managed fields, so that the object
// is read live. An object with another UID stays as it is.
func (w Writer) Inherit(ctx context.Context, rendered *unstructured.Unstructured, uid types.UID) error {
	live := empty(rendered)
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(rendered), live); err != nil || live.GetUID() != uid {
		return client.IgnoreNotFound(err)
	}
	return w.own(ctx, live, w.predecessors(live))
}

// own makes the fields that some managers have updated those of the manager.
func (w Writer) own(ctx context.Context, live *unstructured.Unstructured, managers sets.Set[string]) error {
	if len(managers) == 0 {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, managers, w.Manager)
	if err != nil || patch == nil {
		return err
	}
	if err := w.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("take over managed fields of %s: %w", live.GetName(), err)
	}
	return nil
}

// predecessors are the managers that wrote the owner reference: programs that reconciled the owner. There are none of
// an object that the manager has applied before.
func (w Writer) predecessors(live *unstructured.Unstructured) sets.Set[string] {
	managers := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		switch {
		case entry.Manager == w.Manager && entry.Operation == metav1.ManagedFieldsOperationApply:
			return nil
		case entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && entry.FieldsV1 != nil &&
			strings.Contains(string(entry.FieldsV1.Raw), `"f:ownerReferences"`):
			managers.Insert(entry.Manager)
		}
	}
	return managers
}

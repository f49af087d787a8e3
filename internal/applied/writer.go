package applied

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// Apply writes the fields of a rendered object, and takes them over from other managers. It returns the object as it is stored.
func (w Writer) Apply(ctx context.Context, rendered *unstructured.Unstructured) (*unstructured.Unstructured, error) {
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

func empty(like *unstructured.Unstructured) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(like.GroupVersionKind())
	return o
}

// Inherit makes the fields of an object that another program wrote on behalf of the same owner those of the manager, so that the next apply
// removes the ones that are no longer rendered. Caches have no managed fields, so that the object is read live. An object with another UID
// stays as it is.
func (w Writer) Inherit(ctx context.Context, rendered *unstructured.Unstructured, uid types.UID) error {
	live := empty(rendered)
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(rendered), live); err != nil || live.GetUID() != uid {
		return client.IgnoreNotFound(err)
	}
	managers := w.predecessors(live)
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

// predecessors are the managers that wrote the owner reference: programs that reconciled the owner. There are none of an object that the
// manager has applied before.
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

package uniteddeployment

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

// inherit makes the fields of a workload that another program wrote on behalf of its UnitedDeployment the reconciler's own, so that the next
// apply removes those that are no longer wanted. The cache has no managed fields, so that the workload is read live: once for each process,
// before its first write.
func (r *Reconciler) inherit(ctx context.Context, o *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	if err := r.api.Live.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil || live.GetUID() != o.GetUID() {
		return client.IgnoreNotFound(err)
	}
	managers := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			return nil
		}
		// The writer of the owner reference was the reconciler of UnitedDeployments.
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && entry.FieldsV1 != nil &&
			strings.Contains(string(entry.FieldsV1.Raw), `"f:ownerReferences"`) {
			managers.Insert(entry.Manager)
		}
	}
	if len(managers) == 0 {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, managers, FieldManager)
	if err != nil || patch == nil {
		return err
	}
	if err := r.api.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("take over managed fields of %s: %w", o.GetName(), err)
	}
	return nil
}

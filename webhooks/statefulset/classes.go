package statefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// classFaults returns the errors of an update because claims are expanded. It reads the storage classes of claims
// whose size changes.
func classFaults(
	ctx context.Context, api kinds.API, c kinds.Change[*appsv1beta1.StatefulSet],
) (found kinds.Finding, err error) {
	if !c.IsUpdate {
		return found, nil
	}
	resized, faults := validation.StatefulSetExpansion(c.Now, c.Before)
	if len(resized) == 0 {
		return kinds.Finding{Faults: faults}, nil
	}
	// One read, however many templates a user changes.
	var all storagev1.StorageClassList
	if err := api.List(ctx, &all); err != nil && !apierrors.IsNotFound(err) {
		return found, fmt.Errorf("list storage classes: %w", err)
	}
	for i := range resized {
		claim := &resized[i]
		class := classOf(claim, all.Items)
		at := validation.ClaimTemplates().Key(claim.Name).Child("spec", "resources")
		switch {
		case class == nil && ptr.Deref(claim.Spec.StorageClassName, "") == "":
		case class == nil:
			text := fmt.Sprintf("must not change: the storage class %q does not exist", *claim.Spec.StorageClassName)
			faults = append(faults, field.Forbidden(at, text))
		case !ptr.Deref(class.AllowVolumeExpansion, false):
			text := fmt.Sprintf("must not change: the storage class %q does not allow volume expansion", class.Name)
			faults = append(faults, field.Forbidden(at, text))
		}
	}
	return kinds.Finding{Faults: faults}, nil
}

// classOf is the storage class of a claim; nil where none exists. A claim without one has the newest of those that are
// the default.
func classOf(claim *corev1.PersistentVolumeClaim, all []storagev1.StorageClass) *storagev1.StorageClass {
	var newest *storagev1.StorageClass
	for i := range all {
		class := &all[i]
		switch {
		case claim.Spec.StorageClassName != nil: // the empty name is no class
			if class.Name == *claim.Spec.StorageClassName {
				return class
			}
		case class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" &&
			(newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp)):
			newest = class
		}
	}
	return newest
}

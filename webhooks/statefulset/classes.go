package statefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/templated"
	"github.com/kruisekit/kruisekit/validation"
)

// lookup reads the storage classes of claims whose size changes.
type lookup struct{ api API }

// faults returns what of an update is invalid because claims are expanded.
func (l lookup) faults(ctx context.Context, c templated.Change[*appsv1beta1.StatefulSet]) (field.ErrorList, error) {
	if !c.IsUpdate {
		return nil, nil
	}
	resized, faults := validation.StatefulSetExpansion(c.Now, c.Before)
	for i := range resized {
		claim := &resized[i]
		class, err := l.class(ctx, claim)
		if err != nil {
			return nil, fmt.Errorf("read the storage class of claim template %s: %w", claim.Name, err)
		}
		at := validation.ClaimTemplates().Key(claim.Name).Child("spec", "resources")
		switch {
		case class == nil && ptr.Deref(claim.Spec.StorageClassName, "") == "":
		case class == nil:
			faults = append(faults, field.Forbidden(at, fmt.Sprintf("must not change: the storage class %q does not exist", *claim.Spec.StorageClassName)))
		case !ptr.Deref(class.AllowVolumeExpansion, false):
			faults = append(faults, field.Forbidden(at, fmt.Sprintf("must not change: the storage class %q does not allow volume expansion", class.Name)))
		}
	}
	return faults, nil
}

// class is the storage class of a claim; nil where none exists. A claim without one has the newest of those that are the default.
func (l lookup) class(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	if name := ptr.Deref(claim.Spec.StorageClassName, ""); name != "" {
		class := &storagev1.StorageClass{}
		if err := l.api.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
			return nil, client.IgnoreNotFound(err) //nolint:wrapcheck // the caller names the claim
		}
		return class, nil
	}
	if claim.Spec.StorageClassName != nil {
		return nil, nil // the empty name is no class
	}
	var list storagev1.StorageClassList
	if err := l.api.List(ctx, &list); err != nil && !apierrors.IsNotFound(err) {
		return nil, err //nolint:wrapcheck // the caller names the claim
	}
	var newest *storagev1.StorageClass
	for i := range list.Items {
		class := &list.Items[i]
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" &&
			(newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp)) {
			newest = class
		}
	}
	return newest, nil
}

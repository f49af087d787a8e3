package sidecarset

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar"
)

// conflicts returns the faults with other sets, and those that the stored set has already, which are borne. A set whose
// spec does not change has no new ones.
func (w *Webhooks) conflicts(
	ctx context.Context, set, before *appsv1beta1.SidecarSet,
) (faults, borne field.ErrorList, err error) {
	if before != nil && equality.Semantic.DeepEqual(before.Spec, set.Spec) &&
		sidecar.BaseOf(before) == sidecar.BaseOf(set) {
		return nil, nil, nil
	}
	others, err := w.others(ctx, set.Name)
	if err != nil {
		return nil, nil, err
	}
	if others, err = w.confirmed(ctx, set, others); err != nil {
		return nil, nil, err
	}
	var had field.ErrorList
	if before != nil {
		had = sidecarsets.Conflicts(before, others)
	}
	faults, borne = review.Added(sidecarsets.Conflicts(set, others), had)
	return faults, borne, nil
}

// confirmed returns the others that a set conflicts with, from live reads: the cache may lag behind a deletion or a
// change.
func (w *Webhooks) confirmed(
	ctx context.Context, set *appsv1beta1.SidecarSet, others []*appsv1beta1.SidecarSet,
) ([]*appsv1beta1.SidecarSet, error) {
	var all []*appsv1beta1.SidecarSet
	for _, other := range others {
		if len(sidecarsets.Conflicts(set, []*appsv1beta1.SidecarSet{other})) == 0 {
			continue
		}
		raw := stored.Untyped(appsv1beta1.GroupVersion.WithKind("SidecarSet"))
		err := w.api.Get(ctx, client.ObjectKey{Name: other.Name}, raw)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read SidecarSet %s, which is in conflict: %w", other.Name, err)
		}
		now, invalid, err := stored.Decode[appsv1beta1.SidecarSet](raw)
		if err == nil && invalid == nil && now.DeletionTimestamp == nil {
			all = append(all, now)
		}
	}
	return all, nil
}

// others returns all sets but one, by name. It skips a set that cannot be decoded.
func (w *Webhooks) others(ctx context.Context, name string) ([]*appsv1beta1.SidecarSet, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(appsv1beta1.GroupVersion.WithKind("SidecarSetList"))
	// The objects are only read. A reader without a cache ignores the option.
	if err := w.sets.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list other sets: %w", err)
	}
	var all []*appsv1beta1.SidecarSet
	for i := range list.Items {
		set, invalid, err := stored.Decode[appsv1beta1.SidecarSet](&list.Items[i])
		if err == nil && invalid == nil && set.Name != name {
			all = append(all, set)
		}
	}
	slices.SortFunc(all, func(a, b *appsv1beta1.SidecarSet) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

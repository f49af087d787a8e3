package sidecarset

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
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
func (w *webhooks) conflicts(ctx context.Context, c change) (faults, borne field.ErrorList, err error) {
	set, before := c.Now, c.Before
	if c.IsUpdate && equality.Semantic.DeepEqual(before.Spec, set.Spec) &&
		sidecar.BaseOf(before) == sidecar.BaseOf(set) {
		return nil, nil, nil
	}
	// The cache may lag behind a deletion or a change of another set: it lets a set in, and refuses none.
	for _, reader := range []client.Reader{w.sets, w.api} {
		others, err := others(ctx, reader, set.Name)
		if err != nil {
			return nil, nil, err
		}
		var had field.ErrorList
		if c.IsUpdate {
			had = sidecarsets.Conflicts(before, others)
		}
		if faults, borne = review.Added(sidecarsets.Conflicts(set, others), had); len(faults) == 0 {
			break
		}
	}
	return faults, borne, nil
}

// others returns all sets but one, by name. It skips sets that cannot be decoded or are being deleted.
func others(ctx context.Context, sets client.Reader, name string) ([]*appsv1beta1.SidecarSet, error) {
	list, err := stored.List(ctx, sets, appsv1beta1.GroupVersion.WithKind("SidecarSet"))
	if err != nil {
		return nil, err
	}
	var all []*appsv1beta1.SidecarSet
	for _, raw := range list {
		set, invalid, err := stored.Decode[appsv1beta1.SidecarSet](raw)
		if err == nil && invalid == nil && set.Name != name && set.DeletionTimestamp == nil {
			all = append(all, set)
		}
	}
	slices.SortFunc(all, func(a, b *appsv1beta1.SidecarSet) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func untyped() *unstructured.Unstructured {
	return stored.Untyped(appsv1beta1.GroupVersion.WithKind("SidecarSet"))
}

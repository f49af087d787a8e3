package workloads

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NamedClaims reads claims by their names, those that terminate included, as the own writes left them. It is for a
// workload that does not control its claims, so that no index by owner finds them. recheckAfter is when to look again;
// zero for never.
func (d *Dependents) NamedClaims(
	ctx context.Context, owner types.NamespacedName, names []string,
) (claims map[string]*corev1.PersistentVolumeClaim, recheckAfter time.Duration, err error) {
	cached := make([]*corev1.PersistentVolumeClaim, 0, len(names))
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
		claim := &corev1.PersistentVolumeClaim{}
		switch err := d.api.Client.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: name}, claim,
			&client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, 0, fmt.Errorf("get claim %s: %w", name, err)
		default:
			cached = append(cached, claim)
		}
	}
	all, recheckAfter, err := d.claims.Overlay(ctx, owner, cached)
	if err != nil {
		return nil, 0, fmt.Errorf("read claims: %w", err)
	}
	claims = make(map[string]*corev1.PersistentVolumeClaim, len(all))
	for _, claim := range all {
		if wanted[claim.Name] {
			claims[claim.Name] = claim
		}
	}
	return claims, recheckAfter, nil
}

package statefulset

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/ordinals"
)

// setOf is the name of the set that a pod can belong to by its name.
func setOf(pod string) (string, bool) {
	set, _, ok := ordinals.Split(pod)
	return set, ok
}

// setsOfClaim are the sets that a claim can belong to by its name: the names of its template and of its set may both
// have dashes.
func (r *Reconciler) setsOfClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	rest, ok := setOf(claim.GetName())
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for {
		_, set, more := strings.Cut(rest, "-")
		if !more {
			return requests
		}
		requests, rest = append(requests, r.kit.Existing(ctx, types.NamespacedName{
			Namespace: claim.GetNamespace(), Name: set,
		})...), set
	}
}

package statefulset

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ordinals"
)

// setOf is the name of the set that a pod can belong to by its name.
func setOf(pod string) (string, bool) {
	set, _, ok := ordinals.Split(pod)
	return set, ok
}

// setsOfOrphan is the set that a pod without a controller can belong to, if there is one.
func (r *Reconciler) setsOfOrphan(ctx context.Context, pod client.Object) []reconcile.Request {
	set, ok := setOf(pod.GetName())
	if !ok || metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	return r.existing(ctx, pod.GetNamespace(), set)
}

// setsOfClaim are the sets that a claim can belong to by its name: the names of its template and of its set may both have dashes.
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
		requests, rest = append(requests, r.existing(ctx, claim.GetNamespace(), set)...), set
	}
}

// existing is the request of a set; none where the cache has no such set.
func (r *Reconciler) existing(ctx context.Context, namespace, name string) []reconcile.Request {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := r.kit.Cached.Get(ctx, key, stored.Untyped(gvk())); err != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

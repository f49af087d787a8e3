package workloads

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// OfOrphan is the request of the workload that a pod without a controller can belong to by its name, see Options.Stem; none where there is no
// such workload.
func (k *Kit) OfOrphan(ctx context.Context, pod client.Object) []reconcile.Request {
	name, ok := k.options.Stem(pod.GetName())
	if !ok || metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	return k.Existing(ctx, types.NamespacedName{Namespace: pod.GetNamespace(), Name: name})
}

// Existing is the request of a workload; none where the cache has no such workload.
func (k *Kit) Existing(ctx context.Context, name types.NamespacedName) []reconcile.Request {
	if err := k.Cached.Get(ctx, name, stored.Untyped(k.options.Kind)); err != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: name}}
}

package sidecarterminator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// observe returns what the decision about a pod looks at, nil where there is nothing to decide, and when the cache is
// to be read again. The objects are those of the cache.
func (r *Reconciler) observe(
	ctx context.Context, name types.NamespacedName,
) (in *finish.Input, recheckAfter time.Duration, err error) {
	pod, err := stored.Find[corev1.Pod](ctx, r.api.Client, name)
	if err != nil {
		return nil, 0, err
	}
	if pod == nil || !finish.Concerns(pod) {
		r.requests.Forget(name)
		return nil, 0, nil
	}
	in = &finish.Input{Pod: pod, Now: r.api.Now()}
	if pod.Spec.NodeName != "" {
		if in.Node, err = stored.Find[corev1.Node](ctx, r.api.Client,
			types.NamespacedName{Name: pod.Spec.NodeName}); err != nil {
			return nil, 0, err
		}
	}
	// A malformed request has no containers, so that it stops none.
	request, _, err := stored.Read[v1beta1.ContainerRecreateRequest](ctx, r.api.Cached, gvk(),
		types.NamespacedName{Namespace: pod.Namespace, Name: finish.RequestName(pod.UID)})
	if client.IgnoreNotFound(err) != nil {
		return nil, 0, fmt.Errorf("read request of pod %s: %w", name, err)
	}
	var requests []*v1beta1.ContainerRecreateRequest
	if err == nil {
		requests = append(requests, request)
	}
	if requests, recheckAfter, err = r.requests.Overlay(ctx, name, requests); err != nil {
		return nil, 0, err
	}
	for _, own := range requests {
		if own.Name == finish.RequestName(pod.UID) { // and not that of a former pod of the name
			in.Request = own
		}
	}
	return in, recheckAfter, nil
}

package sidecarterminator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// observe is what the decision about a pod looks at; nil when there is nothing to decide. Objects in it are the cache's.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*finish.Input, error) {
	pod, err := stored.Find[corev1.Pod](ctx, r.api.Client, name)
	if err != nil || pod == nil || !finish.Concerns(pod) {
		return nil, err
	}
	in := &finish.Input{Pod: pod, Now: r.api.Now()}
	if pod.Spec.NodeName != "" {
		if in.Node, err = stored.Find[corev1.Node](ctx, r.api.Client, types.NamespacedName{Name: pod.Spec.NodeName}); err != nil {
			return nil, err
		}
	}
	in.Request, err = r.request(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: finish.RequestName(pod.UID)})
	if in.Request != nil {
		r.memory.seen(pod.UID, in.Request.UID)
	}
	if newer := r.memory.newer(pod.UID, in.Now); newer != nil {
		in.Request = newer
	}
	return in, err
}

// request is one of the cache; nil where there is none. A malformed one has no containers, so that it stops none.
func (r *Reconciler) request(ctx context.Context, name types.NamespacedName) (*v1beta1.ContainerRecreateRequest, error) {
	request, _, err := stored.Read[v1beta1.ContainerRecreateRequest](ctx, r.api.Cached, gvk(), name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read request %s: %w", name.Name, err)
	}
	return request, nil
}

package imagepulljob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/order"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// sorted returns the pods in the order in which the workload that owns the job updates them, so that an image comes
// first to where it is needed first. Without such an owner the order stays.
func (r *Reconciler) sorted(ctx context.Context, s *snapshot, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	owner := metav1.GetControllerOfNoCopy(s.job)
	if owner == nil || len(pods) < 2 || owner.Kind != "CloneSet" && owner.Kind != "StatefulSet" {
		return pods, nil
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != v1beta1.GroupVersion.Group {
		return pods, nil //nolint:nilerr // such an owner is none of ours
	}
	raw := stored.Untyped(v1beta1.GroupVersion.WithKind(owner.Kind))
	switch err := r.api.Cached.Get(ctx, types.NamespacedName{Namespace: s.job.Namespace, Name: owner.Name}, raw); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // it is gone, or not installed
		return pods, nil
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", owner.Kind, owner.Name, err)
	case raw.GetUID() != owner.UID:
		return pods, nil
	}
	if set := stored.Whole[v1beta1.CloneSet](raw); set != nil && owner.Kind == "CloneSet" {
		return order.CloneSet(set, pods, s.now), nil
	}
	if set := stored.Whole[v1beta1.StatefulSet](raw); set != nil && owner.Kind == "StatefulSet" {
		return order.StatefulSet(set, pods), nil
	}
	return pods, nil
}

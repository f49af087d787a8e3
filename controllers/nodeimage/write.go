package nodeimage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/nodestatus"
)

// catchUp is how long the reconciler waits for the cache to have the write of another client.
const catchUp = time.Second

// apply makes the one write that a plan has, if any, and says when to look again.
func (r *Reconciler) apply(ctx context.Context, s *snapshot, plan imagepull.UpkeepPlan) (time.Duration, error) {
	switch {
	case plan.Create != nil:
		return 0, r.create(ctx, s, plan.Create)
	case plan.Delete:
		return r.delete(ctx, s)
	case plan.Update != nil:
		data, err := client.MergeFromWithOptions(s.image, client.MergeFromWithOptimisticLock{}).Data(plan.Update)
		if err != nil {
			return 0, fmt.Errorf("compare NodeImage: %w", err)
		}
		patch := client.RawPatch(types.MergePatchType, data)
		return r.patch(ctx, s, patch, r.api.Client.Patch)
	case plan.Status != nil:
		return r.answer(ctx, s, plan)
	}
	return plan.RequeueAfter, nil
}

func (r *Reconciler) create(ctx context.Context, s *snapshot, image *v1beta1.NodeImage) error {
	raw := r.images.Named(s.key())
	raw.SetLabels(image.Labels)
	switch err := r.api.Client.Create(ctx, raw); {
	case apierrors.IsAlreadyExists(err):
		return nil // its event is on the way
	case err != nil:
		return fmt.Errorf("create NodeImage: %w", err)
	}
	r.images.Writes.Created(s.key(), raw)
	return nil
}

func (r *Reconciler) delete(ctx context.Context, s *snapshot) (time.Duration, error) {
	if s.node == nil {
		if gone, err := r.nodeGone(ctx, s.key()); err != nil || !gone {
			return catchUp, err
		}
	}
	raw := r.images.Named(s.key())
	err := r.api.Client.Delete(ctx, raw, client.Preconditions{UID: &s.image.UID})
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("delete NodeImage: %w", err)
	}
	raw.SetUID(s.image.UID)
	r.images.Writes.Deleted(s.key(), raw)
	return 0, nil
}

// answer ends pulls in place of the node, and emits events for the NodeImage and for the owners of the tags.
func (r *Reconciler) answer(ctx context.Context, s *snapshot, plan imagepull.UpkeepPlan) (time.Duration, error) {
	patch, err := nodestatus.Patch(s.image, plan.Status)
	if err != nil {
		return 0, err
	}
	after, err := r.patch(ctx, s, patch, func(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
		return r.api.Client.Status().Patch(ctx, o, p)
	})
	if err != nil || after > 0 {
		return after, err
	}
	for i := range plan.Failures {
		f := &plan.Failures[i]
		text := fmt.Sprintf("image %s is not pulled on node %s: %s", f.Reference, s.name, f.Message)
		for j := range f.Owners {
			r.api.Event(&f.Owners[j], corev1.EventTypeWarning, reasonPullFailed, text)
		}
		r.api.Event(s.image, corev1.EventTypeWarning, reasonPullFailed, text)
	}
	return 0, nil
}

type patcher = func(context.Context, client.Object, client.Patch, ...client.PatchOption) error

// patch writes what changed since the version that was looked at, and remembers what the API server answered. Where there is a
// later version it writes nothing, and says when to look again.
func (r *Reconciler) patch(ctx context.Context, s *snapshot, patch client.Patch, write patcher) (time.Duration, error) {
	raw := r.images.Named(s.key())
	switch err := write(ctx, raw, patch); {
	case apierrors.IsConflict(err):
		return catchUp, nil
	case apierrors.IsNotFound(err):
		return 0, nil // its event is on the way
	case err != nil:
		return 0, fmt.Errorf("patch NodeImage: %w", err)
	}
	r.images.Writes.Patched(s.key(), raw)
	return 0, nil
}

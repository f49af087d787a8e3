package nodepodprobe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// execute sends the writes of a pass, and returns when to look again; zero for when something happens. A pod that cannot be marked
// holds up no other one.
func (r *Reconciler) execute(ctx context.Context, s *snapshot, p pass) (time.Duration, error) {
	switch {
	case p.remove:
		return r.remove(ctx, s)
	case p.create:
		return 0, r.create(ctx, s, p.content)
	}
	var after time.Duration
	var failure error
	if p.write {
		after, failure = r.update(ctx, s, p.content)
	}
	later, err := r.sender.Send(ctx, s.key(), p.marks)
	return requeue.Sooner(after, later), errors.Join(failure, err)
}

func (r *Reconciler) create(ctx context.Context, s *snapshot, content []v1alpha1.PodProbe) error {
	probes := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: v1alpha1.NodePodProbeSpec{PodProbes: content}}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(probes)
	if err != nil {
		return fmt.Errorf("encode NodePodProbe: %w", err)
	}
	raw := r.probes.Named(s.key())
	raw.Object["spec"] = fields["spec"]
	switch err := r.api.Client.Create(ctx, raw); {
	case apierrors.IsAlreadyExists(err):
		return nil // its event is on the way
	case err != nil:
		return fmt.Errorf("create NodePodProbe: %w", err)
	}
	r.probes.Writes.Created(s.key(), raw)
	return nil
}

// remove deletes the NodePodProbe of a node that is gone. A cache that lacks the node may lag behind.
func (r *Reconciler) remove(ctx context.Context, s *snapshot) (time.Duration, error) {
	if s.node == nil {
		node, err := stored.Metadata(ctx, r.api.Live, corev1.SchemeGroupVersion.WithKind("Node"), s.key())
		if err != nil || node != nil && node.DeletionTimestamp == nil {
			return markers.CatchUp, err
		}
	}
	raw := r.probes.Named(s.key())
	err := r.api.Client.Delete(ctx, raw, client.Preconditions{UID: &s.probes.UID})
	switch {
	case apierrors.IsConflict(err):
		return markers.CatchUp, nil
	case client.IgnoreNotFound(err) != nil:
		return 0, fmt.Errorf("delete NodePodProbe: %w", err)
	}
	raw.SetUID(s.probes.UID)
	r.probes.Writes.Deleted(s.key(), raw)
	return 0, nil
}

// update writes the whole list, which the API server treats as one value, into the version that was looked at.
func (r *Reconciler) update(ctx context.Context, s *snapshot, content []v1alpha1.PodProbe) (time.Duration, error) {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.probes.UID, "resourceVersion": s.probes.ResourceVersion},
		"spec":     map[string]any{"podProbes": content},
	})
	if err != nil {
		return 0, fmt.Errorf("encode NodePodProbe: %w", err)
	}
	raw := r.probes.Named(s.key())
	err = r.api.Client.Patch(ctx, raw, client.RawPatch(types.MergePatchType, data))
	switch {
	case write.IsOutdated(err):
		return markers.CatchUp, nil
	case err != nil:
		return 0, fmt.Errorf("patch NodePodProbe: %w", err)
	}
	r.probes.Writes.Patched(s.key(), raw)
	return 0, nil
}

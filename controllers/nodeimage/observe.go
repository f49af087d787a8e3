package nodeimage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is what one pass looks at.
type snapshot struct {
	name string
	now  time.Time
	// node is the cache's, and only read; nil for none.
	node *corev1.Node
	// image as it is after the own writes; nil for none.
	image *v1beta1.NodeImage
	// malformed says what of the image cannot be decoded, which then is without it.
	malformed error
	// recheckAfter is when to read the image again where the cache lacks it; zero where it does not.
	recheckAfter time.Duration
	// unsure are the reads that failed, so that something stays of which nobody knows whether it is gone.
	unsure []error
}

// sure is whether something is known to be gone.
func (s *snapshot) sure(gone bool, err error) bool {
	if err != nil {
		s.unsure = append(s.unsure, err)
	}
	return gone && err == nil
}

// observe makes the snapshot; nil when there is nothing of that name.
func (r *Reconciler) observe(ctx context.Context, name string) (*snapshot, error) {
	s := &snapshot{name: name, now: r.options.Now()}
	node := &corev1.Node{}
	switch err := r.client.Get(ctx, s.key(), node); {
	case err == nil:
		s.node = node
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get node: %w", err)
	}
	var cached []*unstructured.Unstructured
	raw := stored.Untyped(gvk())
	switch err := r.cached.Get(ctx, s.key(), raw); {
	case err == nil:
		cached = append(cached, raw)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get NodeImage: %w", err)
	case s.node == nil:
		r.writes.Forget(s.key())
		return nil, nil
	}
	fresh, recheckAfter, err := r.writes.Overlay(ctx, s.key(), cached)
	if err != nil || len(fresh) == 0 {
		return s, err
	}
	s.recheckAfter = recheckAfter
	s.image, s.malformed, err = decode(fresh[0])
	return s, err
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return types.NamespacedName{Name: s.name} }

// decode reads a NodeImage, or, where the malformed part is not the spec alone, its metadata.
func decode(raw *unstructured.Unstructured) (image *v1beta1.NodeImage, malformed, err error) {
	image, malformed, err = stored.Decode[v1beta1.NodeImage](raw)
	if err == nil {
		return image, malformed, nil
	}
	rest := map[string]any{"apiVersion": raw.GetAPIVersion(), "kind": raw.GetKind(), "metadata": raw.Object["metadata"]}
	malformed, image = err, &v1beta1.NodeImage{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rest, image); err != nil {
		return nil, nil, fmt.Errorf("decode metadata: %w", err)
	}
	return image, malformed, nil
}

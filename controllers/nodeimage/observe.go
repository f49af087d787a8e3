package nodeimage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// unsure are the reads that failed. The objects that they were for stay in the NodeImage, because they may still exist.
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
	s := &snapshot{name: name, now: r.api.Now()}
	var err error
	if s.node, err = stored.Find[corev1.Node](ctx, r.api.Client, s.key()); err != nil {
		return nil, err
	}
	latest, err := r.images.Latest(ctx, r.api.Cached, s.key())
	switch {
	case err != nil:
		return nil, err
	case !latest.Cached && s.node == nil:
		r.images.Writes.Forget(s.key())
		return nil, nil
	case latest.Object == nil:
		return s, nil
	}
	s.recheckAfter = latest.RecheckAfter
	s.image, s.malformed, err = decode(latest.Object)
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

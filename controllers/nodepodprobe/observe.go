package nodepodprobe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is the input of one pass. Its objects may belong to the cache and are only read.
type snapshot struct {
	name string
	// node is nil for none.
	node *corev1.Node
	// probes is the NodePodProbe as the own writes left it; nil for none.
	probes *v1alpha1.NodePodProbe
	// pods of the node, and markers by the namespaces of the pods.
	pods    []*corev1.Pod
	markers map[string][]*v1alpha1.PodProbeMarker
}

func (s *snapshot) key() types.NamespacedName { return types.NamespacedName{Name: s.name} }

// observe returns the snapshot; nil where there is neither a node nor a NodePodProbe.
func (r *Reconciler) observe(ctx context.Context, name string) (*snapshot, error) {
	s := &snapshot{name: name, markers: map[string][]*v1alpha1.PodProbeMarker{}}
	var err error
	if s.node, err = stored.Find[corev1.Node](ctx, r.api.Client, s.key()); err != nil {
		return nil, err
	}
	latest, err := r.probes.Latest(ctx, r.api.Cached, s.key())
	if err != nil {
		return nil, err
	}
	if latest.Object != nil {
		probes, malformed, err := stored.Decode[v1alpha1.NodePodProbe](latest.Object)
		if err != nil {
			return nil, err
		}
		if malformed != nil {
			probes.Spec = v1alpha1.NodePodProbeSpec{} // it is computed, and written again
		}
		s.probes = probes
	}
	if s.node == nil {
		if s.probes == nil {
			r.probes.Writes.Forget(s.key())
			return nil, nil
		}
		return s, nil
	}
	return s, r.observePods(ctx, s)
}

func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	var list corev1.PodList
	onNode := client.MatchingFields{markers.NodeField: s.name}
	if err := r.api.Client.List(ctx, &list, onNode, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	s.pods = stored.Pointers(list.Items)
	for _, pod := range s.pods {
		if _, known := s.markers[pod.Namespace]; known {
			continue
		}
		found, err := r.markers.In(ctx, pod.Namespace)
		if err != nil {
			return err
		}
		s.markers[pod.Namespace] = found
	}
	return nil
}

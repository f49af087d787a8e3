package podprobemarker

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is the input of one pass. Its objects may belong to the cache and are only read.
type snapshot struct {
	// marker as the own writes left it. One that cannot be decoded has no spec.
	marker    *v1alpha1.PodProbeMarker
	malformed error
	// running reports whether a NodePodProbe has probes of the marker. It is looked up for a marker that is being deleted.
	running bool
	// normal counts the probed pods on nodes with a daemon. virtual are those on virtual nodes.
	normal  int
	virtual []*corev1.Pod
	// serverless means that pods on virtual nodes are marked. others are then the markers that may select them.
	serverless bool
	others     []*v1alpha1.PodProbeMarker
}

func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.marker) }

// observe returns the snapshot; nil for a marker that is gone.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.kind.Latest(ctx, r.api.Cached, name)
	if err != nil {
		return nil, err
	}
	if latest.Object == nil {
		if !latest.Cached {
			r.kind.Writes.Forget(name)
			r.markers.Forget(name)
		}
		return nil, nil
	}
	s := &snapshot{serverless: r.options.Serverless}
	if s.marker, s.malformed, err = stored.Decode[v1alpha1.PodProbeMarker](latest.Object); err != nil {
		return nil, err
	}
	switch {
	case s.marker.DeletionTimestamp != nil:
		probed := client.MatchingFields{markers.ProbedField: markers.Key(name.Namespace, name.Name)}
		nodes, err := stored.List(ctx, r.api.Cached, markers.NodeGVK(), probed)
		s.running = len(nodes) > 0
		return s, err
	case s.malformed != nil:
		return s, nil //nolint:nilerr // an event reports it
	}
	return s, r.observePods(ctx, s)
}

func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	var list corev1.PodList
	selector := client.MatchingLabelsSelector{Selector: podprobe.Selector(s.marker)}
	namespace := client.InNamespace(s.marker.Namespace)
	if err := r.api.Client.List(ctx, &list, namespace, selector, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	nodes := map[string]*corev1.Node{}
	for i := range list.Items {
		pod := &list.Items[i]
		if !podprobe.IsProbed(pod) {
			continue
		}
		node, known := nodes[pod.Spec.NodeName]
		if !known {
			var err error
			node, err = stored.Find[corev1.Node](ctx, r.api.Client, types.NamespacedName{Name: pod.Spec.NodeName})
			if err != nil {
				return err
			}
			nodes[pod.Spec.NodeName] = node
		}
		switch {
		case node == nil: // the node is gone, and so will be the pod
		case podprobe.IsVirtual(node):
			s.virtual = append(s.virtual, pod)
		default:
			s.normal++
		}
	}
	if !s.serverless || len(s.virtual) == 0 {
		return nil
	}
	var err error
	s.others, err = r.markers.In(ctx, s.marker.Namespace)
	return err
}

// Package markers finds PodProbeMarkers in a cache, for the reconcilers of PodProbeMarkers and of NodePodProbes and for
// the webhook of pods.
//
//	found, err := m.In(ctx, pod.Namespace)
//	selecting, err := m.Selecting(ctx, pod)
//
// Markers are read as untyped objects, as the package stored explains. A marker that cannot be decoded is left out.
// Each is decoded once for each of its versions, and must not be changed.
package markers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// GVK is the kind of markers.
func GVK() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("PodProbeMarker") }

// NodeGVK is the kind of NodePodProbes.
func NodeGVK() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("NodePodProbe") }

// Markers are those of a cache. The zero value with a reader is ready.
type Markers struct {
	// Cached reads untyped objects.
	Cached client.Reader

	memo stored.Memo[v1alpha1.PodProbeMarker, *v1alpha1.PodProbeMarker]
}

// In returns the markers of a namespace.
func (m *Markers) In(ctx context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error) {
	raws, err := stored.List(ctx, m.Cached, GVK(), client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	found := make([]*v1alpha1.PodProbeMarker, 0, len(raws))
	for _, raw := range raws {
		if marker := m.memo.Decode(raw); marker != nil {
			found = append(found, marker)
		}
	}
	return found, nil
}

// Selecting returns the markers that select a pod.
func (m *Markers) Selecting(ctx context.Context, pod *corev1.Pod) ([]*v1alpha1.PodProbeMarker, error) {
	all, err := m.In(ctx, pod.Namespace)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return podprobe.Selecting(pod, all), nil
}

// Of returns the marker of an event; nil where it cannot be decoded.
func (m *Markers) Of(o client.Object) *v1alpha1.PodProbeMarker { return m.memo.Decode(o) }

// Forget drops a marker that is gone.
func (m *Markers) Forget(name types.NamespacedName) { m.memo.Forget(name) }

// NodeField is the name of the index of pods by their node, and NodeOf its function. Other reconcilers have the same
// one.
const NodeField = "kruisekit.dev/node"

// NodeOf is where a pod is in the index.
func NodeOf(o client.Object) []string {
	if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// ProbedField is the name of the index of NodePodProbes by the markers of their probes, and ProbedOf its function.
const ProbedField = "kruisekit.dev/probed-markers"

// Key is a marker in the index.
func Key(namespace, name string) string { return namespace + "/" + name }

// ProbedOf is where a NodePodProbe is in the index.
func ProbedOf(o client.Object) []string {
	probes := stored.Whole[v1alpha1.NodePodProbe](o)
	if probes == nil {
		return nil
	}
	var keys []string
	seen := map[string]bool{}
	for i := range probes.Spec.PodProbes {
		p := &probes.Spec.PodProbes[i]
		for j := range p.Probes {
			marker, _, ok := podprobe.MarkerOf(p.Probes[j].Name)
			if key := Key(p.Namespace, marker); ok && !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}

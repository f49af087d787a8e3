package pod

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// ProbeOptions are the options of the step that writes probes into new pods.
type ProbeOptions struct {
	// Serverless has the step write probes, for the providers of virtual nodes.
	Serverless bool
}

// Markers finds PodProbeMarkers.
type Markers interface {
	// Ready waits until all markers can be read. It returns at once if they can, also with a context that has ended.
	Ready(ctx context.Context) error
	// In returns the markers of a namespace that write probes into pods. They must not be changed.
	In(ctx context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error)
}

// mostProbeBytes bounds the annotations of the step. An API server accepts 256 KiB of annotations.
const mostProbeBytes = 64 << 10

// Probes returns the step that writes the probes of PodProbeMarkers into the annotations of a pod. A lookup that fails,
// and probes that take too much, leave the pod without them, with a warning.
func Probes(all Markers) Step {
	s := Step{Name: scope.Probes().Step, Apply: func(ctx context.Context, r Request) (Result, error) {
		if all == nil {
			return Result{}, nil
		}
		annotations, err := stamp(ctx, all, r)
		if err != nil {
			return Result{Lacking: 1, Warnings: []string{
				fmt.Sprintf("created without the probes of PodProbeMarkers for virtual nodes: %v", err),
			}}, nil
		}
		return Result{Pod: annotated(r.Pod, annotations)}, nil
	}}
	if all != nil {
		s.Ready = all.Ready
	}
	return s
}

// stamp returns the annotations with the probes of the markers that select the pod.
func stamp(ctx context.Context, all Markers, r Request) (map[string]string, error) {
	if err := all.Ready(ctx); err != nil {
		return nil, err
	}
	found, err := all.In(ctx, r.Namespace)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	pod := *r.Pod
	pod.Namespace = r.Namespace
	annotations, err := podprobe.Stamp(&pod, found)
	size := 0
	for key, text := range annotations {
		size += len(key) + len(text)
	}
	if err == nil && size > mostProbeBytes {
		err = fmt.Errorf("they take more than %d bytes", mostProbeBytes)
	}
	return annotations, err
}

// annotated returns the pod with annotations; nil where the pod has them.
func annotated(pod *corev1.Pod, annotations map[string]string) *corev1.Pod {
	next := *pod
	next.Annotations = maps.Clone(pod.Annotations)
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	maps.Copy(next.Annotations, annotations)
	if maps.Equal(next.Annotations, pod.Annotations) {
		return nil
	}
	return &next
}

func probesFromManager(mgr ctrl.Manager, o Options) (Step, error) {
	if !o.Probes.Serverless {
		return Probes(nil), nil
	}
	found := &followed{Markers: markers.Markers{Cached: mgr.GetCache()}}
	found.follower = &watches.Follower{
		Kind: markers.GVK(), Put: func(context.Context, *unstructured.Unstructured) { found.any.Store(true) },
		Delete: func(raw *unstructured.Unstructured) { found.Forget(client.ObjectKeyFromObject(raw)) },
	}
	if err := found.follower.AddTo(mgr); err != nil {
		return Step{}, err
	}
	return Probes(found), nil
}

// followed are the markers of a cache, once the kind is installed and the cache has all of them.
type followed struct {
	markers.Markers

	follower *watches.Follower
	// any is whether there has been a marker. Without the kind the cache would ask the API server for each pod.
	any atomic.Bool
}

// Ready waits until the cache has all markers.
func (f *followed) Ready(ctx context.Context) error { return f.follower.Wait(ctx) }

// In returns the markers of a namespace that write probes into pods.
func (f *followed) In(ctx context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error) {
	if !f.any.Load() {
		return nil, nil
	}
	all, err := f.Markers.In(ctx, namespace)
	return slices.DeleteFunc(all, func(m *v1alpha1.PodProbeMarker) bool { return !podprobe.Stamps(m) }), err
}

package pod

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/following"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// ProbeOptions are the options of the step that writes probes into new pods.
type ProbeOptions struct {
	// Serverless has the step write probes, for the providers of virtual nodes.
	Serverless bool
}

// Markers finds the PodProbeMarkers that select a pod.
type Markers interface {
	// Ready waits until all markers can be read. It returns at once if they can, also with a context that has ended.
	Ready(ctx context.Context) error
	// Selecting returns the markers that select a pod of a namespace. They must not be changed.
	Selecting(namespace string, pod *corev1.Pod) []*v1alpha1.PodProbeMarker
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
		if err := all.Ready(ctx); err != nil {
			return Result{Lacking: 1, Warnings: []string{
				fmt.Sprintf("created without the probes of PodProbeMarkers for virtual nodes: %v", err),
			}}, nil
		}
		pod := *r.Pod
		pod.Namespace = r.Namespace
		annotations, err := podprobe.Stamp(&pod, all.Selecting(r.Namespace, &pod))
		size := 0
		for key, text := range annotations {
			size += len(key) + len(text)
		}
		if err == nil && size > mostProbeBytes {
			err = fmt.Errorf("they take more than %d bytes", mostProbeBytes)
		}
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
	x := &markerIndex{namespaces: map[string]map[string]selecting{}}
	x.follower = &following.Follower{Kind: markers.GVK(), Put: x.put, Delete: x.remove}
	if err := x.follower.AddTo(mgr); err != nil {
		return Step{}, err
	}
	return Probes(x), nil
}

// markerIndex has the markers of the cluster that write probes into pods, by namespace and name.
type markerIndex struct {
	follower *following.Follower

	mu         sync.RWMutex
	namespaces map[string]map[string]selecting
}

// selecting is a marker with its selector.
type selecting struct {
	marker   *v1alpha1.PodProbeMarker
	selector labels.Selector
}

// Ready waits until the index has all markers.
func (x *markerIndex) Ready(ctx context.Context) error { return x.follower.Wait(ctx) }

// Selecting returns the markers that select a pod.
func (x *markerIndex) Selecting(namespace string, pod *corev1.Pod) []*v1alpha1.PodProbeMarker {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*v1alpha1.PodProbeMarker
	for _, s := range x.namespaces[namespace] {
		if s.selector.Matches(labels.Set(pod.Labels)) {
			found = append(found, s.marker)
		}
	}
	return found
}

func (x *markerIndex) put(ctx context.Context, raw *unstructured.Unstructured) {
	m := stored.Whole[v1alpha1.PodProbeMarker](raw)
	if m == nil {
		log.FromContext(ctx).Info("Skipped a marker that cannot be decoded", "marker", client.ObjectKeyFromObject(raw))
	}
	if m == nil || !podprobe.Stamps(m) {
		x.remove(raw)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.namespaces[m.Namespace] == nil {
		x.namespaces[m.Namespace] = map[string]selecting{}
	}
	x.namespaces[m.Namespace][m.Name] = selecting{m, podprobe.Selector(m)}
}

func (x *markerIndex) remove(raw *unstructured.Unstructured) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := x.namespaces[raw.GetNamespace()]
	if delete(of, raw.GetName()); len(of) == 0 {
		delete(x.namespaces, raw.GetNamespace())
	}
}

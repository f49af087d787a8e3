package workloadspread

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// maxChain is how many owners above each other are looked up.
const maxChain = 4

// find returns the WorkloadSpread of a pod; nil where there is none: the nearest target in the chain of the controllers
// of the pod, then the first WorkloadSpread by name. Owners are read only in namespaces where one may matter.
func (d *Allocator) find(ctx context.Context, namespace string, pod *corev1.Pod) (*subset.Spread, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !d.lookups.Spreads.Any(namespace) {
		return nil, nil
	}
	var allowed Allowed // empty where no WorkloadSpread has a target of a further kind
	further := d.lookups.Spreads.hasFurther(namespace)
	if further {
		allowed = d.lookups.Targets.Kinds.Read(ctx)
	}
	for range maxChain {
		of := replicas.Of(namespace, owner)
		if !BuiltIn(of.GroupKind()) && !slices.Contains(allowed.Owners, of.GroupKind()) {
			return nil, nil
		}
		for _, ws := range d.lookups.Spreads.Of(namespace, of.Target) {
			if subset.Admits(ws, pod.Labels) {
				return ws, nil
			}
		}
		if !further && of.GroupKind() != replicas.ReplicaSets() {
			return nil, nil
		}
		above, err := d.ownerOf(ctx, of)
		if err != nil || above == nil {
			return nil, err
		}
		owner = above
	}
	return nil, nil
}

// ownerOf returns the controller of a workload; nil where it has none or does not exist. ReplicaSets are read from the
// cache.
func (d *Allocator) ownerOf(ctx context.Context, of replicas.Workload) (*metav1.OwnerReference, error) {
	mapping, err := d.lookups.Targets.Finder.Mapper.RESTMapping(of.GroupKind())
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", of.GroupKind(), err)
	}
	name := types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
	var object *metav1.PartialObjectMetadata
	if of.GroupKind() == replicas.ReplicaSets() {
		if object, err = stored.Metadata(ctx, d.lookups.Targets.Finder.Cached, mapping.GroupVersionKind, name); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", of.Kind, of.Name, err)
		}
	}
	if object == nil || object.UID != of.UID { // the cache may lack a new one
		object = stored.MetadataOf(mapping.GroupVersionKind, name)
		if err := d.lookups.Targets.Live.Get(ctx, name, object); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s %s: %w", of.Kind, of.Name, err)
		}
	}
	if object.UID != of.UID {
		return nil, nil
	}
	return metav1.GetControllerOf(object), nil
}

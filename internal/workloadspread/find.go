package workloadspread

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/pub"
)

// maxChain is how many owners above each other are looked up.
const maxChain = 4

// find returns the WorkloadSpread of a pod; nil where there is none. Owners are read only in namespaces where one may
// matter.
func (d *Allocator) find(ctx context.Context, namespace string, pod *corev1.Pod) (*subset.Spread, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !d.lookups.Spreads.Any(namespace) {
		return nil, nil
	}
	for range maxChain {
		of := replicas.Of(namespace, owner)
		if !BuiltIn(of.GroupKind()) && !d.allows(ctx, namespace, of.GroupKind()) {
			return nil, nil
		}
		for _, ws := range d.lookups.Spreads.Of(namespace, of.Target) {
			if subset.Admits(ws, pod.Labels) {
				return ws, nil
			}
		}
		if !d.mayHaveOwner(ctx, namespace, of.GroupKind()) {
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

// hasCustom reports whether a WorkloadSpread of a namespace has a target of a further kind.
func (d *Allocator) hasCustom(namespace string) bool {
	return d.lookups.Spreads.Targets(namespace, func(k schema.GroupKind) bool { return !BuiltIn(k) })
}

// allows reports whether the installation allows a further kind. The list is read only where a WorkloadSpread may need
// it.
func (d *Allocator) allows(ctx context.Context, namespace string, kind schema.GroupKind) bool {
	return d.hasCustom(namespace) && slices.Contains(d.lookups.Targets.Kinds.Read(ctx).Owners, kind)
}

// mayHaveOwner reports whether a WorkloadSpread of the namespace may have the owner of a workload as its target.
func (d *Allocator) mayHaveOwner(ctx context.Context, namespace string, kind schema.GroupKind) bool {
	if kind == replicas.ReplicaSets() && d.lookups.Spreads.Targets(namespace, func(k schema.GroupKind) bool {
		return k == replicas.Deployments()
	}) {
		return true
	}
	if !d.hasCustom(namespace) {
		return false
	}
	allowed := d.lookups.Targets.Kinds.Read(ctx).Targets
	return d.lookups.Spreads.Targets(namespace, func(k schema.GroupKind) bool { return slices.Contains(allowed, k) })
}

// maxOwners bounds how many owners are kept.
const maxOwners = 10000

// ownerOf returns the controller of a workload, which is read once; nil where it has none or does not exist.
func (d *Allocator) ownerOf(ctx context.Context, of replicas.Workload) (*metav1.OwnerReference, error) {
	d.mu.Lock()
	known, is := d.owners[of.UID]
	d.mu.Unlock()
	if is {
		return known, nil
	}
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
		if err := d.lookups.Live.Get(ctx, name, object); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s %s: %w", of.Kind, of.Name, err)
		}
	}
	if object.UID != of.UID {
		return nil, nil
	}
	above := metav1.GetControllerOf(object)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.owners) >= maxOwners {
		clear(d.owners)
	}
	d.owners[of.UID] = above
	return above, nil
}

// versionOf returns the version of a pod by the kind of its controller.
func (d *Allocator) versionOf(pod *corev1.Pod) string {
	kind := ""
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		kind = owner.Kind
	}
	return subset.VersionOf(pod, kind, d.options.Versioned)
}

func isStatefulSet(target pub.Target) bool { return target.Kind == "StatefulSet" }

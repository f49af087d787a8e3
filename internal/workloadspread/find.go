package workloadspread

import (
	"context"
	"fmt"
	"slices"
	"time"

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

// find returns the WorkloadSpread of a pod; nil where there is none: the nearest target in the chain of the controllers
// of the pod, then the first WorkloadSpread by name. Owners are read only in namespaces where one may matter.
func (d *Allocator) find(ctx context.Context, namespace string, pod *corev1.Pod) (*subset.Spread, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !d.lookups.Spreads.Any(namespace) {
		return nil, nil
	}
	spreads := d.lookups.Spreads.In(namespace)
	allowed, further := d.further(ctx, spreads)
	hasDeployments := hasTarget(spreads, func(k schema.GroupKind) bool { return k == replicas.Deployments() })
	for range maxChain {
		of := replicas.Of(namespace, owner)
		if !BuiltIn(of.GroupKind()) && !slices.Contains(allowed.Owners, of.GroupKind()) {
			return nil, nil
		}
		for _, e := range spreads {
			if e.target == of.Target && subset.Admits(e.spread, pod.Labels) {
				return e.spread, nil
			}
		}
		if !further && (of.GroupKind() != replicas.ReplicaSets() || !hasDeployments) {
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

// further reads the further kinds where a WorkloadSpread may need them, and reports whether one has an allowed target
// of such a kind.
func (d *Allocator) further(ctx context.Context, spreads []entry) (allowed Allowed, has bool) {
	if !hasTarget(spreads, func(k schema.GroupKind) bool { return !BuiltIn(k) }) {
		return allowed, false
	}
	allowed = d.lookups.Targets.Kinds.Read(ctx)
	return allowed, hasTarget(spreads, func(k schema.GroupKind) bool { return slices.Contains(allowed.Targets, k) })
}

// hasTarget reports whether a WorkloadSpread has a target of some kind.
func hasTarget(spreads []entry, holds func(schema.GroupKind) bool) bool {
	return slices.ContainsFunc(spreads, func(e entry) bool {
		return e.target != pub.Target{} && holds(schema.GroupKind{Group: e.target.Group, Kind: e.target.Kind})
	})
}

// maxOwners bounds how many owners are kept, ownerTTL for how long, and orphanTTL how long a workload without one is
// not read again: it may be adopted.
const (
	maxOwners = 10000
	ownerTTL  = time.Hour
	orphanTTL = time.Minute
)

// ownerOf returns the controller of a workload, which is read once for all its pods; nil where it has none or does not
// exist. ReplicaSets are read from the cache.
func (d *Allocator) ownerOf(ctx context.Context, of replicas.Workload) (*metav1.OwnerReference, error) {
	if kept, known := d.owners.Get(of.UID); known {
		owner, _ := kept.(*metav1.OwnerReference)
		return owner, nil
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
		if err := d.lookups.Targets.Live.Get(ctx, name, object); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s %s: %w", of.Kind, of.Name, err)
		}
	}
	if object.UID != of.UID {
		return nil, nil
	}
	owner, ttl := metav1.GetControllerOf(object), ownerTTL
	if owner == nil {
		ttl = orphanTTL
	}
	d.owners.Add(of.UID, owner, ttl)
	return owner, nil
}

package replicas

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// ReplicaSetsOf returns the UIDs of the ReplicaSets of a Deployment, sorted. The first call adds an index to the cache.
func (w *Finder) ReplicaSetsOf(ctx context.Context, namespace string, deployment types.UID) ([]types.UID, error) {
	w.mu.Lock()
	gvk, indexed := w.watched[ReplicaSets()], w.indexed
	w.mu.Unlock()
	if !indexed && w.Indexer != nil {
		if err := w.indexReplicaSets(ctx, gvk); err != nil {
			return nil, err
		}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := w.Cached.List(ctx, list,
		append(owned.In(namespace, deployment), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list replicasets: %w", err)
	}
	var all []types.UID
	for i := range list.Items {
		set := &list.Items[i]
		if owner := metav1.GetControllerOfNoCopy(set); owner != nil && owner.UID == deployment &&
			set.DeletionTimestamp == nil {
			all = append(all, set.UID)
		}
	}
	slices.Sort(all)
	return all, nil
}

// indexReplicaSets adds the index at the first use, because an index starts the watch of ReplicaSets.
func (w *Finder) indexReplicaSets(ctx context.Context, gvk schema.GroupVersionKind) error {
	if err := owned.Index(ctx, w.Indexer, stored.MetadataOf(gvk, types.NamespacedName{})); err != nil {
		return fmt.Errorf("index replicasets: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.indexed = true
	return nil
}

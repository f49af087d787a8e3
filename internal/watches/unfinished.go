package watches

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
)

const (
	// unfinishedField is the name of the index of the jobs that have not ended.
	unfinishedField = "kruisekit.dev/goes-on"
	yes             = "true"
)

// Unfinished are the jobs of a kind, whose Go type is T, that have not ended.
type Unfinished[T any] struct {
	Kind schema.GroupVersionKind
	// Over reports whether a job has ended.
	Over func(*T) bool
}

// Index adds the index that List reads.
func (u *Unfinished[T]) Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, stored.Untyped(u.Kind), unfinishedField, func(o client.Object) []string {
		if o.GetDeletionTimestamp() != nil {
			return nil
		}
		if job := stored.Whole[T](o); job != nil && !u.Over(job) {
			return []string{yes}
		}
		return nil
	})
}

// List returns the jobs of a namespace that have not ended; with an empty namespace, those of all namespaces. The
// reader must serve untyped objects from a cache.
func (u *Unfinished[T]) List(
	ctx context.Context, cached client.Reader, namespace string,
) ([]*unstructured.Unstructured, error) {
	return stored.List(ctx, cached, u.Kind, client.InNamespace(namespace), client.MatchingFields{unfinishedField: yes})
}

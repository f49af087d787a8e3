package watches

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/stored"
)

const (
	// unfinishedField is the name of the index of the jobs that have not ended.
	unfinishedField = "kruisekit.dev/goes-on"
	yes             = "true"
)

// Unfinished are the jobs of a kind that have not ended, with what each of them looks at. It is safe for concurrent
// use.
type Unfinished[T, R any] struct {
	kind schema.GroupVersionKind
	over func(*T) bool
	// rules are those of the jobs, in one list for each namespace.
	rules *Rules[T, R]
}

// NewUnfinished returns the jobs of a kind, whose Go type is T. over reports whether a job has ended. rule is that of
// NewRules.
func NewUnfinished[T, R any](
	kind schema.GroupVersionKind, over func(*T) bool, rule func(*T) (R, error),
) *Unfinished[T, R] {
	return &Unfinished[T, R]{kind: kind, over: over, rules: NewRules(rule)}
}

// Index adds the index that Affected reads.
func (u *Unfinished[T, R]) Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, stored.Untyped(u.kind), unfinishedField, func(o client.Object) []string {
		if o.GetDeletionTimestamp() != nil {
			return nil
		}
		if job := stored.Whole[T](o); job != nil && !u.over(job) {
			return []string{yes}
		}
		return nil
	})
}

// Affected returns requests for the jobs of a namespace whose rule an event affects. An empty namespace means all
// namespaces. The reader must serve untyped objects from a cache.
func (u *Unfinished[T, R]) Affected(
	ctx context.Context, cached client.Reader, namespace string, affects func(R) bool,
) ([]reconcile.Request, error) {
	jobs, err := stored.List(ctx, cached, u.kind, client.InNamespace(namespace),
		client.MatchingFields{unfinishedField: yes})
	if err != nil {
		return nil, err
	}
	return u.rules.Affected(namespace, jobs, affects), nil
}

// Forget drops the rule of a job that is gone.
func (u *Unfinished[T, R]) Forget(name types.NamespacedName) { u.rules.Forget(name) }

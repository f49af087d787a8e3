package groupcommit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// State is a state of an object, in whose status the requests are recorded.
type State interface{ Stored() client.Object }

// Statuses is what a Store does besides Decide, where the status of an object records its requests.
type Statuses[S State] struct {
	Kind schema.GroupVersionKind
	// Index follows the objects of the kind.
	Index *stored.Index[S]
	// Client writes statuses, and Reader reads live after a conflict.
	Client client.Client
	Reader client.Reader
}

// Cached implements Store.
func (s *Statuses[S]) Cached(key Key) (S, bool) {
	state, ok := s.Index.Find(key.NamespacedName)
	return state, ok && state.Stored().GetUID() == key.UID
}

// Live implements Store.
func (s *Statuses[S]) Live(ctx context.Context, key Key) (state S, found bool, err error) {
	raw := stored.Untyped(s.Kind)
	if err := s.Reader.Get(ctx, key.NamespacedName, raw); err != nil {
		return state, false, client.IgnoreNotFound(err)
	}
	state, err = s.Index.Renew(raw)
	return state, err == nil && raw.GetUID() == key.UID, err
}

// Write implements Store. The patch tests the resource version.
func (s *Statuses[S]) Write(ctx context.Context, from, after S) error {
	patch, err := stored.AlwaysMergeStatus(from.Stored(), after.Stored(), nil, stored.SameVersion)
	if err != nil {
		return err
	}
	answer := stored.Untyped(s.Kind)
	answer.SetNamespace(from.Stored().GetNamespace())
	answer.SetName(from.Stored().GetName())
	if err := s.Client.Status().Patch(ctx, answer, patch); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	_, err = s.Index.Renew(answer)
	return err
}

// Package contended writes objects that several reconcilers and daemons write at the same time.
//
// Each write is a function of the object: it is asked again with the live object after a conflict, so that no writer
// undoes what another one has written. Writers of one process take turns per object, and see each other's writes in a
// ledger, so that only foreign writers cause conflicts.
//
// When not to use it: where a patch of separate fields needs no conflict, as of labels or of a map's keys.
package contended

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/ledger"
)

// attempts at one object after a conflict.
const attempts = 5

// Writer writes objects of one kind. The key of an object is also the owner of its writes in the ledger.
type Writer[T any, P interface {
	*T
	client.Object
}] struct {
	// Client writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Cached returns the object of the cache, which is only read; nil where there is none.
	Cached func(ctx context.Context, key client.ObjectKey) (P, error)
	// Writes are those of all objects of the kind.
	Writes *ledger.Ledger[P]

	turns [64]sync.Mutex
}

// Latest returns an object of the cache as the own writes left it; nil where it is gone.
func (w *Writer[T, P]) Latest(ctx context.Context, cached P) (P, error) {
	known, _, err := w.Writes.Overlay(ctx, client.ObjectKeyFromObject(cached), []P{cached})
	if err != nil || len(known) == 0 {
		return nil, err
	}
	return known[0], nil
}

// Write patches an object with what change makes of it, and returns what it became; nil where it does not exist. change
// returns a changed copy, or nil to leave the object as it is. After a conflict it is called again with the live
// object.
func (w *Writer[T, P]) Write(ctx context.Context, key client.ObjectKey, change func(P) (P, error)) (P, error) {
	turn := w.turn(key)
	turn.Lock()
	defer turn.Unlock()
	// Another writer of this process may have written while this one waited.
	object, err := w.Cached(ctx, key)
	if err != nil || object == nil {
		return nil, err
	}
	if object, err = w.Latest(ctx, object); err != nil || object == nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		changed, err := change(object)
		if changed == nil || err != nil {
			return object, err
		}
		err = w.Client.Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil:
			w.Writes.Patched(key, changed)
			return changed, nil
		case apierrors.IsNotFound(err):
			return nil, nil
		case !apierrors.IsConflict(err) || attempt == attempts:
			return object, err
		}
		fresh := P(new(T))
		if err := w.Live.Get(ctx, key, fresh); apierrors.IsNotFound(err) {
			return nil, nil
		} else if err != nil {
			return object, fmt.Errorf("read %s live: %w", key, err)
		}
		object = fresh
	}
}

func (w *Writer[T, P]) turn(key client.ObjectKey) *sync.Mutex {
	h := fnv.New32a()
	fmt.Fprint(h, key)
	return &w.turns[h.Sum32()%uint32(len(w.turns))]
}

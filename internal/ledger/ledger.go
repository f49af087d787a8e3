// Package ledger lets a reconciler read its own writes.
//
// A cache lags behind what was written. A reconciler that trusts it creates a pod twice, or begins an update that it has
// begun already. The ledger keeps what the API server answered to each write, lays it over what the cache
// says, and forgets it as soon as the cache has caught up. Nobody waits, and no event handler takes part.
//
//	created := pod.DeepCopy()
//	if err := c.Create(ctx, created); err != nil { l.Doubt(owner, created, err) } else { l.Created(owner, created) }
//	...
//	pods, err := l.Overlay(ctx, owner, cached)
//
// A write whose outcome nobody knows, because the connection broke, is a doubt: the next Overlay asks the API server.
// So is an entry that the cache does not confirm for minutes; a lost event cannot stop a controller.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long the cache may lag behind before the API server is asked.
const patience = time.Minute

// Ledger holds the writes of one kind of object, by the name of their owner: it is all that is known of an owner that is
// gone. What an earlier owner of the same name wrote is in the result of Overlay too; owner references tell.
type Ledger[T client.Object] struct {
	live client.Reader
	now  func() time.Time

	mu     sync.Mutex
	writes int64
	owners map[types.NamespacedName]map[string]entry[T]
}

// entry is the last write of an object, by its name.
type entry[T client.Object] struct {
	object T
	kind   kind
	at     time.Time
	number int64
}

type kind int

const (
	patched kind = iota // the cache has seen the object before
	created             // the cache may not have seen it yet
	deleted
	doubted // it may exist, or not
)

// New makes a ledger. live reads from the API server, past every cache.
func New[T client.Object](live client.Reader, now func() time.Time) *Ledger[T] {
	return &Ledger[T]{live: live, now: now, owners: map[types.NamespacedName]map[string]entry[T]{}}
}

// Created records what the API server answered to a create.
func (l *Ledger[T]) Created(owner types.NamespacedName, object T) { l.record(owner, object, created) }

// Patched records what the API server answered to a change.
func (l *Ledger[T]) Patched(owner types.NamespacedName, object T) { l.record(owner, object, patched) }

// Deleted records that the API server has accepted a deletion.
func (l *Ledger[T]) Deleted(owner types.NamespacedName, object T) { l.record(owner, object, deleted) }

// Doubt records a create that failed, unless the API server says that it was not made.
func (l *Ledger[T]) Doubt(owner types.NamespacedName, object T, err error) {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		// All that blames the request. A timeout blames nobody.
		if code := answer.Status().Code; code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout {
			return
		}
	}
	l.record(owner, object, doubted)
}

// Forget drops everything of an owner.
func (l *Ledger[T]) Forget(owner types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owners, owner)
}

func (l *Ledger[T]) record(owner types.NamespacedName, object T, k kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owners[owner] == nil {
		l.owners[owner] = map[string]entry[T]{}
	}
	if k == patched && l.owners[owner][object.GetName()].kind == created {
		k = created // the cache still may not have seen it
	}
	l.writes++
	l.owners[owner][object.GetName()] = entry[T]{object, k, l.now(), l.writes}
}

// Overlay gives the objects of an owner as they are after all recorded writes. Objects whose deletion was accepted are
// left out, unless the cache knows it. The given slice is not changed; its objects may be in the result.
func (l *Ledger[T]) Overlay(ctx context.Context, owner types.NamespacedName, cached []T) ([]T, error) {
	l.mu.Lock()
	entries := maps.Clone(l.owners[owner])
	l.mu.Unlock()
	if len(entries) == 0 {
		return cached, nil
	}
	result := make([]T, 0, len(cached)+len(entries))
	for _, object := range cached {
		e, ok := entries[object.GetName()]
		delete(entries, object.GetName())
		if !ok {
			result = append(result, object)
			continue
		}
		known, use, err := l.compare(ctx, e, object)
		if err != nil {
			return nil, err
		}
		if known {
			l.drop(owner, e)
		}
		if use != nil {
			result = append(result, *use)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		object, err := l.missing(ctx, owner, entries[name])
		if err != nil {
			return nil, err
		}
		if object != nil {
			result = append(result, *object)
		}
	}
	return result, nil
}

// compare says whether the cache knows of a write, and which object to use; nil for none.
func (l *Ledger[T]) compare(ctx context.Context, e entry[T], cached T) (known bool, use *T, err error) {
	if e.kind == doubted || cached.GetUID() != e.object.GetUID() {
		// It exists, or another one took the name.
		return true, &cached, nil
	}
	if e.kind == deleted {
		if cached.GetDeletionTimestamp() != nil {
			return true, &cached, nil
		}
		if l.now().Sub(e.at) < patience {
			return false, nil, nil
		}
		object, err := l.read(ctx, e.object)
		return true, object, err
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), e.object.GetResourceVersion())
	if err != nil || order >= 0 {
		return true, &cached, nil //nolint:nilerr // versions that cannot be compared are the cache's to tell
	}
	if l.now().Sub(e.at) >= patience {
		object, err := l.read(ctx, e.object)
		return true, object, err
	}
	return false, &e.object, nil
}

// missing says what to make of a write of an object that the cache does not have.
func (l *Ledger[T]) missing(ctx context.Context, owner types.NamespacedName, e entry[T]) (*T, error) {
	switch e.kind {
	case created:
		if l.now().Sub(e.at) < patience {
			return &e.object, nil
		}
	case doubted:
	case patched, deleted:
		l.drop(owner, e) // it is gone
		return nil, nil
	}
	object, err := l.read(ctx, e.object)
	if err != nil {
		return nil, err
	}
	if object == nil {
		l.drop(owner, e)
		return nil, nil
	}
	l.record(owner, *object, created)
	return object, nil
}

// read asks the API server; nil when the object is gone.
func (l *Ledger[T]) read(ctx context.Context, object T) (*T, error) {
	fresh, ok := object.DeepCopyObject().(T)
	if !ok {
		return nil, fmt.Errorf("copy of %T is of another type", object)
	}
	err := l.live.Get(ctx, client.ObjectKeyFromObject(object), fresh)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s past the cache: %w", object.GetName(), err)
	}
	return &fresh, nil
}

// drop forgets a write, unless another one of the object has been recorded meanwhile.
func (l *Ledger[T]) drop(owner types.NamespacedName, e entry[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := l.owners[owner]
	if entries[e.object.GetName()].number == e.number {
		delete(entries, e.object.GetName())
	}
	if len(entries) == 0 {
		delete(l.owners, owner)
	}
}

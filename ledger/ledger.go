package ledger

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// Patience is how long the cache may take to show a write before Overlay reads the object live.
	Patience = time.Minute

	// lag is how long caches take to show a write, at most. One that takes longer may have lost the event.
	lag = 5 * time.Second
	// retention is how long the deletion of an object is recorded that the cache never shows: it may have missed all of
	// it.
	retention = 10 * Patience
)

// Ledger holds writes of objects of one kind, by the name of their owner: the name is all that is known of an owner
// that is gone. Overlay may return objects that an earlier owner of the same name wrote; owner references distinguish
// them. Owners of different kinds need a Ledger each.
type Ledger[T client.Object] struct {
	live client.Reader
	now  func() time.Time
	keep func(T) T

	mu     sync.Mutex
	writes int64
	owners map[types.NamespacedName]map[types.NamespacedName]entry[T]
}

// entry is the last known state of an object that was written.
type entry[T client.Object] struct {
	object T
	kind   kind
	at     time.Time
	number int64
	// gone means that a live read has shown the end of an object that was deleted.
	gone bool
}

type kind int

const (
	patched kind = iota // the cache has seen the object before
	created             // the cache may not have seen the object yet
	deleted             // the cache has seen the object, which is deleted or gone
	unseen              // deleted, and the cache may not have seen the object yet
	doubted             // the object may exist, or not
)

// New returns an empty Ledger. live reads from the API server, past every cache.
func New[T client.Object](live client.Reader, now func() time.Time) *Ledger[T] {
	return &Ledger[T]{live: live, now: now, owners: map[types.NamespacedName]map[types.NamespacedName]entry[T]{}}
}

// Keeping sets what the Ledger keeps of a recorded object, and returns the Ledger: an answer has all that its kind has,
// where a cache may lack what is not read. keep may change the object. Call it before the first record.
func (l *Ledger[T]) Keeping(keep func(object T) T) *Ledger[T] {
	l.keep = keep
	return l
}

// Created records the object that the API server returned for a create.
func (l *Ledger[T]) Created(owner types.NamespacedName, object T) { l.record(owner, object, created) }

// Patched records the object that the API server returned for an update or a patch.
func (l *Ledger[T]) Patched(owner types.NamespacedName, object T) { l.record(owner, object, patched) }

// Deleted records that the API server has accepted the deletion of an object.
func (l *Ledger[T]) Deleted(owner types.NamespacedName, object T) { l.record(owner, object, deleted) }

// Doubt records a create that failed, unless the error shows that the API server did not create the object. An object
// whose name the API server generates is not recorded: no read can show whether it exists.
func (l *Ledger[T]) Doubt(owner types.NamespacedName, object T, err error) {
	if object.GetName() != "" && !write.IsRefused(err) {
		l.record(owner, object, doubted)
	}
}

// Record records what the API server answered to a write of an object of type T, and ignores other objects. The
// server-side apply of an object without a UID counts as its creation. Package driver calls Record for each write of a
// pass.
func (l *Ledger[T]) Record(owner types.NamespacedName, w *write.Write, answer write.Object, err error) {
	object, ok := w.Object.(T)
	if !ok {
		return
	}
	switch fresh, answered := answer.(T); {
	case creates(w) && err != nil:
		l.Doubt(owner, object, err)
	case creates(w) && answered:
		l.Created(owner, fresh)
	case (w.Verb == write.Delete || w.Verb == write.Evict) && (err == nil || apierrors.IsNotFound(err)):
		l.Deleted(owner, object)
	case w.Verb == write.Patch && err == nil && answered:
		l.Patched(owner, fresh)
	}
}

// creates reports whether a write may create its object.
func creates(w *write.Write) bool {
	return w.Verb == write.Create ||
		w.Type == types.ApplyPatchType && w.Subresource == write.Main && w.Object.GetUID() == ""
}

// Forget drops all entries of an owner.
func (l *Ledger[T]) Forget(owner types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owners, owner)
}

func (l *Ledger[T]) record(owner types.NamespacedName, object T, k kind) {
	if l.keep != nil {
		object = l.keep(object)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owners[owner] == nil {
		l.owners[owner] = map[types.NamespacedName]entry[T]{}
	}
	id := client.ObjectKeyFromObject(object)
	before, known := l.owners[owner][id]
	if known && k == deleted && object.GetUID() == "" { // a deletion by the name
		object = before.object
	}
	if known && before.object.GetUID() == object.GetUID() {
		switch { // the cache may still not have seen the object
		case before.kind == created && k == patched:
			k = created
		case (before.kind == created || before.kind == unseen) && k == deleted:
			k = unseen
		}
	}
	l.writes++
	l.owners[owner][id] = entry[T]{object: object, kind: k, at: l.now(), number: l.writes}
}

// Overlay returns the objects of an owner as they are after all recorded writes. Objects whose deletion was recorded
// are left out, unless the cache shows the deletion in progress. cached is not changed; its objects may be in the
// result.
//
// recheckAfter is not zero while the cache lacks an object that was created: if the object was deleted before the cache
// showed it, no event announces that. Nor is it zero where the cache shows the state before a write for more than some
// seconds: where etcd was restored to an older version, no event follows. The caller reconciles the owner again after
// that time at the latest.
func (l *Ledger[T]) Overlay(
	ctx context.Context, owner types.NamespacedName, cached []T,
) (objects []T, recheckAfter time.Duration, err error) {
	l.mu.Lock()
	entries := maps.Clone(l.owners[owner])
	l.mu.Unlock()
	if len(entries) == 0 {
		return cached, 0, nil
	}
	views := l.views(entries, cached)
	objects = make([]T, 0, len(views))
	for i := range views {
		v := &views[i]
		if v.unconfirmed {
			if err := l.confirm(ctx, v); err != nil {
				return nil, 0, err
			}
		}
		l.settle(owner, v)
		if v.visible {
			objects = append(objects, v.object)
		}
		recheckAfter = passes.Sooner(recheckAfter, v.recheckAfter)
	}
	return objects, recheckAfter, nil
}

// Deleting returns the objects of an owner whose deletion was recorded, and of which nothing later is known. Overlay
// leaves them out. They may still terminate, as pods do for their grace period: a caller that must not replace an
// object before its end treats them as such. Call it after Overlay. recheckAfter is when to call it again where no
// event may announce the end; zero for never.
func (l *Ledger[T]) Deleting(owner types.NamespacedName) (objects []T, recheckAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries, now := l.owners[owner], l.now()
	for _, id := range slices.SortedFunc(maps.Keys(entries), compareNames) {
		e := entries[id]
		left := Patience - now.Sub(e.at)
		switch {
		case e.kind == deleted && !e.gone:
			objects = append(objects, e.object)
		case e.kind == unseen && !e.gone && left > 0: // the cache may have missed all of it
			objects = append(objects, e.object)
			recheckAfter = passes.Sooner(recheckAfter, left)
		}
	}
	return objects, recheckAfter
}

// views returns the objects of the cache in their order, and then those of which the ledger alone knows, by namespace
// and name.
func (l *Ledger[T]) views(entries map[types.NamespacedName]entry[T], cached []T) []view[T] {
	now := l.now()
	views := make([]view[T], 0, len(cached)+len(entries))
	for _, object := range cached {
		id := client.ObjectKeyFromObject(object)
		if e, recorded := entries[id]; recorded {
			views = append(views, compare(e, object, now))
		} else {
			views = append(views, view[T]{object: object, visible: true})
		}
		delete(entries, id)
	}
	for _, id := range slices.SortedFunc(maps.Keys(entries), compareNames) {
		views = append(views, missing(entries[id], now))
	}
	return views
}

// settle updates the entry of a view: the entry ends when the cache has confirmed the write, and starts again with what
// a live read returned. A write that was recorded in the meantime stays.
func (l *Ledger[T]) settle(owner types.NamespacedName, v *view[T]) {
	if v.then == keep {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	entries, id := l.owners[owner], client.ObjectKeyFromObject(v.entry.object)
	if entries[id].number != v.entry.number {
		return
	}
	if v.then == renew {
		v.entry.at = l.now()
		entries[id] = v.entry
		return
	}
	delete(entries, id)
	if len(entries) == 0 {
		delete(l.owners, owner)
	}
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// newer reports whether a state of an object is as new as an entry, or newer. Versions that cannot be compared count as
// newer.
func newer[T client.Object](object T, e entry[T]) bool {
	order, err := write.CompareVersions(object.GetResourceVersion(), e.object.GetResourceVersion())
	return err != nil || order >= 0
}

// view is one object in one call of Overlay.
type view[T client.Object] struct {
	object  T
	visible bool
	// entry is the one that the view was compared with, where then is not keep.
	entry entry[T]
	then  then
	// unconfirmed means that only a live read shows the state of the object.
	unconfirmed bool
	// lacking means that the cache does not have an object of the name.
	lacking bool
	// other means that the cache has an earlier object of the name.
	other        bool
	recheckAfter time.Duration
}

// then is what becomes of the entry.
type then int

const (
	keep  then = iota
	drop       // the cache has confirmed the write
	renew      // a live read has confirmed the write, and the cache still lags
)

// compare views an object that the cache has and that was written.
func compare[T client.Object](e entry[T], cached T, now time.Time) view[T] {
	confirmed := view[T]{object: cached, visible: true, entry: e, then: drop}
	gone := e.kind == deleted || e.kind == unseen
	same := cached.GetUID() == e.object.GetUID()
	switch {
	case e.kind == doubted:
		return confirmed
	case gone && same && cached.GetDeletionTimestamp() != nil:
		return confirmed
	case (!gone || !same) && newer(cached, e): // or a later object took the name
		return confirmed
	case now.Sub(e.at) >= Patience:
		return view[T]{entry: e, unconfirmed: true, other: !same}
	case e.kind == unseen && same:
		e.kind = deleted
		return view[T]{entry: e, then: renew}
	}
	behind := view[T]{object: e.object, visible: !gone}
	if age := now.Sub(e.at); age >= lag {
		behind.recheckAfter = Patience - age
	}
	return behind
}

// missing views an object that was written and that the cache does not have.
func missing[T client.Object](e entry[T], now time.Time) view[T] {
	age := now.Sub(e.at)
	switch {
	case e.kind == unseen && age < retention:
		return view[T]{}
	case e.kind == patched || e.kind == deleted || e.kind == unseen: // the cache has shown the end of the object
		return view[T]{entry: e, then: drop}
	case e.kind == doubted || age >= Patience:
		return view[T]{entry: e, unconfirmed: true, lacking: true}
	}
	return view[T]{object: e.object, visible: true, recheckAfter: Patience - age}
}

// confirm completes a view by a live read. The entry then holds the result, so that it outlasts a cache that still
// lags.
func (l *Ledger[T]) confirm(ctx context.Context, v *view[T]) error {
	name := client.ObjectKeyFromObject(v.entry.object)
	fresh, _ := v.entry.object.DeepCopyObject().(T)
	switch err := l.live.Get(ctx, name, fresh); {
	case apierrors.IsNotFound(err) && v.lacking:
		v.then = drop
	case apierrors.IsNotFound(err) && v.other:
		v.then, v.entry.kind, v.entry.gone = renew, unseen, true
	case apierrors.IsNotFound(err):
		v.then, v.entry.kind, v.entry.gone = renew, deleted, true
	case err != nil:
		return fmt.Errorf("read %s live: %w", name, err)
	default:
		v.object, v.visible = fresh, true
		v.then = renew
		if v.lacking || v.other || fresh.GetUID() != v.entry.object.GetUID() {
			v.entry.kind = created
		} else if v.entry.kind == deleted || v.entry.kind == unseen {
			v.entry.kind = patched // in its deletion
		}
		v.entry.object, v.entry.gone = fresh, false
		if v.lacking {
			v.recheckAfter = Patience
		}
	}
	return nil
}

package ledger

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

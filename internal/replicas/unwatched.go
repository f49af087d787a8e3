package replicas

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/pub"
)

// share is how many reads a namespace has had since a time.
type share struct {
	since time.Time
	reads int
}

// answer is what was read of a workload whose kind is not watched.
type answer struct {
	Found
	at time.Time
}

// findForeign returns a workload of a kind that is not watched, as it was within the last minute.
func (w *Finder) findForeign(ctx context.Context, of Workload) (Found, error) {
	w.mu.Lock()
	known, ok := w.foreign[of]
	w.mu.Unlock()
	if ok && w.Now().Before(known.at.Add(Period)) {
		return known.Found, nil
	}
	if !w.mayRead(of.Namespace) {
		return Found{Workload: pub.Workload{UID: of.UID, Unknown: true}, Unwatched: true}, nil
	}
	is, err := w.read(ctx, of)
	if err != nil {
		return Found{}, err
	}
	is.Unwatched = true
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.foreign == nil || len(w.foreign) >= maxMemo {
		w.foreign = map[Workload]answer{}
	}
	w.foreign[of] = answer{is, w.Now()}
	return is, nil
}

// mayRead takes one read from the share of a namespace.
func (w *Finder) mayRead(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shares == nil || len(w.shares) >= maxMemo {
		w.shares = map[string]share{}
	}
	s, now := w.shares[namespace], w.Now()
	if !now.Before(s.since.Add(Period)) {
		s = share{since: now}
	}
	s.reads++
	w.shares[namespace] = s
	return s.reads <= MaxUnwatched
}

// read reads a workload live. One of a kind that is not served, not namespaced, or that the controller may not read,
// has unknown replicas.
func (w *Finder) read(ctx context.Context, of Workload) (Found, error) {
	unknown := Found{Workload: pub.Workload{UID: of.UID, Unknown: true}}
	mapping, err := w.Mapper.RESTMapping(of.GroupKind())
	switch {
	case meta.IsNoMatchError(err):
		return unknown, nil
	case err != nil:
		return Found{}, fmt.Errorf("look up %s: %w", of.Kind, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return unknown, nil
	}
	object, err := stored.Metadata(ctx, w.Live, mapping.GroupVersionKind, types.NamespacedName{
		Namespace: of.Namespace, Name: of.Name,
	})
	switch {
	case apierrors.IsForbidden(err):
		object = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: of.Name, UID: of.UID,
		}}
	case err != nil:
		return Found{}, err
	case object == nil || object.DeletionTimestamp != nil || of.UID != "" && object.UID != of.UID:
		return gone(of), nil
	}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	s, err := w.size(ctx, object)
	if apierrors.IsForbidden(err) {
		return unknown, nil
	}
	object.UID = cmp.Or(object.UID, s.uid)
	return sized(object, s), err
}

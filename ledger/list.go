package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// List returns the objects that an owner controls, of those that a cache lists in the namespace of the owner, with what
// was written since: see Overlay. Writes are recorded under the name of the owner. The list is empty, and for objects
// of the kind of the Ledger; options select by labels or by an index.
func (l *Ledger[T]) List( //nolint:revive // the List of a client.Reader for an owner
	ctx context.Context, cache client.Reader, owner client.Object, list client.ObjectList, options ...client.ListOption,
) (objects []T, recheckAfter time.Duration, err error) {
	options = append([]client.ListOption{client.InNamespace(owner.GetNamespace())}, options...)
	if err := cache.List(ctx, list, options...); err != nil {
		return nil, 0, err
	}
	var cached []T
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(T)
		if !ok {
			return fmt.Errorf("list of %T: want %T", item, object)
		}
		cached = append(cached, object)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	objects, recheckAfter, err = l.Overlay(ctx, client.ObjectKeyFromObject(owner), cached)
	isForeign := func(object T) bool { return !metav1.IsControlledBy(object, owner) }
	return slices.DeleteFunc(objects, isForeign), recheckAfter, err
}

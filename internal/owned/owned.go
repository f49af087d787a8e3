// Package owned finds the objects that another one owns, reconciles the owner when they change, and releases them.
package owned

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/write"
)

// field is the name of the index.
const field = "kruisekit.dev/owner-uid"

// Index lets In select objects of a kind by the UID of their owners. Several controllers of one manager may ask for the
// same index.
func Index(ctx context.Context, indexer client.FieldIndexer, object client.Object) error {
	return binding.SharedIndex(indexer.IndexField(ctx, object, field, func(o client.Object) []string {
		var uids []string
		for _, ref := range o.GetOwnerReferences() {
			uids = append(uids, string(ref.UID))
		}
		return uids
	}))
}

// In selects the objects of an owner in a namespace.
func In(namespace string, owner types.UID) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{field: string(owner)}}
}

// Controls reports whether an owner controls an object, in whatever version the reference was recorded.
func Controls(owner, object metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && ref.UID == owner.GetUID()
}

// By reconciles the controlling owner of a kind when an object changes, whatever version the reference has. An object
// that gets another owner has both reconciled.
func By(group, kind string) handler.EventHandler {
	return ByAfter(group, kind, func(types.NamespacedName) time.Duration { return 0 })
}

// ByAfter is By with a pause before the owner is reconciled. Changes that come during the pause share one reconcile. It
// is for owners with many objects, whose reconcile costs more than the change of one object is worth.
func ByAfter(group, kind string, pause func(owner types.NamespacedName) time.Duration) handler.EventHandler {
	add := func(q watches.Queue, objects ...client.Object) {
		var last reconcile.Request
		for _, o := range objects {
			owner, is := ownerOf(o, group, kind)
			if !is || owner == last {
				continue
			}
			last = owner
			if after := pause(owner.NamespacedName); after > 0 {
				q.AddAfter(owner, after)
			} else {
				q.Add(owner)
			}
		}
	}
	return binding.Direct(handler.Funcs{
		CreateFunc:  func(_ context.Context, e event.CreateEvent, q watches.Queue) { add(q, e.Object) },
		UpdateFunc:  func(_ context.Context, e event.UpdateEvent, q watches.Queue) { add(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(_ context.Context, e event.DeleteEvent, q watches.Queue) { add(q, e.Object) },
		GenericFunc: func(_ context.Context, e event.GenericEvent, q watches.Queue) { add(q, e.Object) },
	})
}

// ownerOf returns the request of the owner of a kind that controls an object, and whether there is one.
func ownerOf(o client.Object, group, kind string) (reconcile.Request, bool) {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.Kind != kind {
		return reconcile.Request{}, false
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || gv.Group != group {
		return reconcile.Request{}, false
	}
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}}, true
}

// Concerns selects the events of objects that a kind controls, or controlled before. It comes before predicates that
// cost more.
func Concerns(group, kind string) predicate.Predicate {
	return either(func(o client.Object) bool {
		_, is := ownerOf(o, group, kind)
		return is
	})
}

// ConcernsOrphans selects the events of objects that no owner controls, or controlled before.
func ConcernsOrphans() predicate.Predicate {
	return either(func(o client.Object) bool { return metav1.GetControllerOfNoCopy(o) == nil })
}

// either selects the events of objects that are as asked before the event or after it.
func either(is func(client.Object) bool) predicate.Predicate {
	selects := predicate.NewPredicateFuncs(is)
	selects.UpdateFunc = func(e event.UpdateEvent) bool { return is(e.ObjectNew) || is(e.ObjectOld) }
	return selects
}

// Release returns the patch by which an owner releases an object, and hands it over to other owners, if any are given.
// It applies only to the object that was observed.
func Release(object write.Object, from types.UID, to ...*metav1.OwnerReference) write.Write {
	return Refer(object, []types.UID{from}, to...)
}

// Refer returns the patch that removes the references of an object to some owners, and adds others. It applies only to
// the object that was observed. The API server rejects a second controller.
func Refer(object write.Object, remove []types.UID, add ...*metav1.OwnerReference) write.Write {
	owners := make([]any, 0, len(remove)+len(add))
	for _, uid := range remove {
		owners = append(owners, map[string]any{"$patch": "delete", "uid": uid})
	}
	for _, owner := range add {
		owners = append(owners, owner)
	}
	return write.Write{
		Verb: write.Patch, Object: object, Type: types.StrategicMergePatchType,
		Body: write.Fields{"metadata": map[string]any{"uid": object.GetUID(), "ownerReferences": owners}},
	}
}

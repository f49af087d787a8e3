package nodeimage

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// ownerField is the name of the index of NodeImages by the UIDs of those who own their tags.
const ownerField = "kruisekit.dev/tag-owner-uid"

// owners are the UIDs of all owners of tags.
func owners(o client.Object) []string {
	image := stored.Whole[v1beta1.NodeImage](o)
	if image == nil {
		return nil
	}
	uids := map[string]bool{}
	for _, i := range image.Spec.Images {
		for _, t := range i.Tags {
			for _, ref := range t.OwnerReferences {
				uids[string(ref.UID)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(uids))
}

// jobEvents wake the NodeImages whose tags a deleted job owns, and let them know that it is gone.
func (r *Reconciler) jobEvents() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watches.Queue) {
		r.facts.Add(identity{jobKind(), client.ObjectKeyFromObject(e.Object), e.Object.GetUID()}, true, remember)
		images, err := stored.List(ctx, r.api.Cached, gvk(), client.MatchingFields{ownerField: string(e.Object.GetUID())})
		if err != nil {
			log.FromContext(ctx).Error(err, "Owners of tags are cleared later", "job", client.ObjectKeyFromObject(e.Object))
			return
		}
		for _, image := range images {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: image.GetName()}})
		}
	}}
}

// nodeEvents are all but the updates of a node that say nothing to its NodeImage, such as heartbeats.
func nodeEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isNode := e.ObjectOld.(*corev1.Node)
		after, isToo := e.ObjectNew.(*corev1.Node)
		return !isNode || !isToo || before.UID != after.UID ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || !maps.Equal(before.Labels, after.Labels) ||
			!readySince(before).Equal(readySince(after))
	}}
}

// readySince is when a node became ready; zero while it is not.
func readySince(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// imageEvents are all but the updates of a NodeImage in which a pull only goes on.
func imageEvents() predicate.Predicate {
	return watches.Decisive(func(before, after *unstructured.Unstructured) bool {
		if !maps.Equal(before.GetLabels(), after.GetLabels()) {
			return true
		}
		was, is := stored.Whole[v1beta1.NodeImage](before), stored.Whole[v1beta1.NodeImage](after)
		return was == nil || is == nil || !maps.EqualFunc(was.Status.ImageStatuses, is.Status.ImageStatuses, sameAnswers)
	})
}

// sameAnswers reports whether two statuses of an image are the same, but for the progress of its pulls.
func sameAnswers(a, b v1beta1.ImageStatus) bool {
	return slices.EqualFunc(a.Tags, b.Tags, func(s, t v1beta1.ImageTagStatus) bool {
		return s.Tag == t.Tag && s.Version == t.Version && s.CompletionTime.Equal(t.CompletionTime)
	})
}

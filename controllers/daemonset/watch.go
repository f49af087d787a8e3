package daemonset

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/workload/eligible"
)

// interests are what the sets that were observed look at of nodes, so that an event of a node reads no set.
type interests struct {
	mu    sync.Mutex
	bySet map[types.NamespacedName]interest
}

// interest is what one set looks at.
type interest struct {
	rule *eligible.Rule
	// updates selects the nodes whose pods are updated; nil for all.
	updates labels.Selector
}

func (i *interests) note(set types.NamespacedName, in interest) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bySet == nil {
		i.bySet = map[types.NamespacedName]interest{}
	}
	i.bySet[set] = in
}

func (i *interests) forget(set types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.bySet, set)
}

// wake reconciles the sets for which something holds.
func (i *interests) wake(queue workqueue.TypedRateLimitingInterface[reconcile.Request], concerns func(interest) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for set, in := range i.bySet {
		if concerns(in) {
			queue.Add(reconcile.Request{NamespacedName: set})
		}
	}
}

// handler reconciles the sets that an event of a node concerns. A set that was not observed yet is reconciled anyway.
func (i *interests) handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	exists := func(o client.Object) func(interest) bool {
		node, isNode := o.(*corev1.Node)
		return func(in interest) bool { return isNode && in.rule.Check(node).Stay }
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { i.wake(q, exists(e.Object)) },
		// Pods that wait for the scheduler may be pinned to the node that is gone.
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { i.wake(q, exists(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, was := e.ObjectOld.(*corev1.Node)
			after, is := e.ObjectNew.(*corev1.Node)
			if was && is && eligible.Changed(before, after) {
				i.wake(q, func(in interest) bool { return in.changed(before, after) })
			}
		},
	}
}

func (in interest) changed(before, after *corev1.Node) bool {
	x, y := in.rule.Check(before), in.rule.Check(after)
	if x.Run != y.Run || x.Stay != y.Stay {
		return true
	}
	return in.updates != nil && y.Stay &&
		in.updates.Matches(labels.Set(before.Labels)) != in.updates.Matches(labels.Set(after.Labels))
}

package daemonset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// nodeEvents reconciles the sets that an event of a node concerns. When the process starts, all sets are reconciled
// anyway.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q watches.Queue, before, after *corev1.Node) {
		if before != nil && after != nil && !eligible.Changed(before, after) {
			return
		}
		sets, err := stored.List(ctx, r.kit.Cached, gvk())
		watches.Log(ctx, err, "Failed to requeue the DaemonSets that a node concerns")
		for _, raw := range sets {
			if set := stored.Whole[v1beta1.DaemonSet](raw); set != nil && concerns(set, before, after) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
			}
		}
	})
}

// concerns reports whether a set looks at a node in another way after a change. Pods that wait for the scheduler may be
// pinned to a node that is gone.
func concerns(set *v1beta1.DaemonSet, before, after *corev1.Node) bool {
	rule, updates := eligible.Compile(&set.Spec.Template.Spec, eligible.Options{Daemon: true}), updatesOf(set)
	type view struct{ run, stay, updated bool }
	look := func(node *corev1.Node) view {
		if node == nil {
			return view{}
		}
		v := rule.Check(node)
		return view{v.Run, v.Stay, v.Stay && updates != nil && updates.Matches(labels.Set(node.Labels))}
	}
	return look(before) != look(after)
}

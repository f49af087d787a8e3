package daemonset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/handler"

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
		for _, request := range r.views.Affected("", sets, func(v view) bool { return v.of(before) != v.of(after) }) {
			q.Add(request)
		}
	})
}

// view is how a set looks at nodes.
type view struct {
	rule    *eligible.Rule
	updates labels.Selector
}

func newView(set *v1beta1.DaemonSet) (view, error) {
	return view{eligible.Compile(&set.Spec.Template.Spec, eligible.Options{Daemon: true}), updatesOf(set)}, nil
}

// seen is what a set makes of a node.
type seen struct{ run, stay, updated bool }

// of looks at a node. Pods that wait for the scheduler may be pinned to a node that is gone.
func (v view) of(node *corev1.Node) seen {
	if node == nil {
		return seen{}
	}
	is := v.rule.Check(node)
	return seen{is.Run, is.Stay, is.Stay && v.updates != nil && v.updates.Matches(labels.Set(node.Labels))}
}

package native

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/workload/native"
)

// setup registers the controller of a kind, which reconciles a set on events of the set and of its pods.
func (l *loop) setup(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	name := map[native.Kind]string{
		native.KindStatefulSet: "native-statefulset-controller", native.KindDaemonSet: "native-daemonset-controller",
	}[l.kind]
	if err := l.Setup(ctx, mgr, name); err != nil {
		return err
	}
	bound := l.Bind(mgr, name, o).For(l.empty(), builder.WithPredicates(matters()))
	bound.Watches(&corev1.Pod{}, owned.By(appsv1.GroupName, string(l.kind)),
		builder.WithPredicates(workloads.Changes(workloads.WatchOptions{Now: l.Now})))
	if err := bound.Complete(l); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	return nil
}

// empty returns a set of the kind.
func (l *loop) empty() client.Object {
	if l.kind == native.KindDaemonSet {
		return &appsv1.DaemonSet{}
	}
	return &appsv1.StatefulSet{}
}

// matters leaves out changes that no pass looks at, as of the status annotation.
func matters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
			!maps.Equal(asked(before), asked(after)) || !apiequality.Semantic.DeepEqual(statusOf(before), statusOf(after))
	}}
}

// asked are the annotations of a set that a pass looks at.
func asked(set client.Object) map[string]string {
	all := map[string]string{}
	if text, has := set.GetAnnotations()[native.RolloutKey]; has {
		all[native.RolloutKey] = text
	}
	return all
}

func statusOf(set client.Object) any {
	switch of := set.(type) {
	case *appsv1.StatefulSet:
		return &of.Status
	case *appsv1.DaemonSet:
		return &of.Status
	}
	return nil
}

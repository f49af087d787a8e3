package native

import (
	"context"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/workload/native"
)

// setup registers the controller of a kind, which reconciles a set on events of the set and of its pods.
func (l *loop) setup(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	name := "native-" + strings.ToLower(string(l.kind)) + "-controller"
	if err := l.Setup(ctx, mgr, name); err != nil {
		return err
	}
	bound := l.Bind(mgr, name, o).For(l.empty(), builder.WithPredicates(matters()))
	byPods := owned.By(appsv1.GroupName, string(l.kind))
	if l.kind == native.KindDeployment {
		if err := owned.Index(ctx, mgr.GetFieldIndexer(), &appsv1.ReplicaSet{}); err != nil {
			return fmt.Errorf("index ReplicaSets: %w", err)
		}
		bound.Watches(&appsv1.ReplicaSet{}, byPods)
		byPods = handler.EnqueueRequestsFromMapFunc(l.deploymentOf)
	}
	bound.Watches(&corev1.Pod{}, byPods,
		builder.WithPredicates(workloads.Changes(workloads.WatchOptions{Now: l.Now})))
	bound.WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(l.setsIn),
		builder.WithPredicates(relabelled()))
	if err := bound.Complete(l); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	return nil
}

// deploymentOf returns the request of the Deployment that has a pod through a ReplicaSet.
func (l *loop) deploymentOf(ctx context.Context, pod client.Object) []ctrl.Request {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != "ReplicaSet" {
		return nil
	}
	name := types.NamespacedName{Namespace: pod.GetNamespace(), Name: ref.Name}
	var set appsv1.ReplicaSet
	if err := l.Client.Get(ctx, name, &set, client.UnsafeDisableDeepCopy); err != nil {
		return nil // its last event comes when it is gone
	}
	if ref = metav1.GetControllerOfNoCopy(&set); ref == nil || ref.Kind != string(native.KindDeployment) {
		return nil
	}
	name.Name = ref.Name
	return []ctrl.Request{{NamespacedName: name}}
}

// setsIn returns the requests of all sets in a namespace.
func (l *loop) setsIn(ctx context.Context, namespace client.Object) (requests []ctrl.Request) {
	list := l.emptyList()
	err := l.Client.List(ctx, list, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Skipped the sets of a namespace whose label changed")
		return nil
	}
	_ = meta.EachListItem(list, func(set runtime.Object) error {
		if set, ok := set.(client.Object); ok {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(set)})
		}
		return nil
	})
	return requests
}

// relabelled leaves out namespaces whose label RolloutKey is the same.
func relabelled() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetLabels()[native.RolloutKey] != e.ObjectNew.GetLabels()[native.RolloutKey]
		},
	}
}

// empty returns a set of the kind.
func (l *loop) empty() client.Object {
	switch l.kind {
	case native.KindDaemonSet:
		return &appsv1.DaemonSet{}
	case native.KindDeployment:
		return &appsv1.Deployment{}
	}
	return &appsv1.StatefulSet{}
}

// emptyList returns a list of sets of the kind.
func (l *loop) emptyList() client.ObjectList {
	return map[native.Kind]client.ObjectList{
		native.KindStatefulSet: &appsv1.StatefulSetList{}, native.KindDaemonSet: &appsv1.DaemonSetList{},
		native.KindDeployment: &appsv1.DeploymentList{},
	}[l.kind]
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
	for _, key := range []string{native.RolloutKey, native.HoldKey} {
		if text, ok := set.GetAnnotations()[key]; ok {
			all[key] = text
		}
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
	return nil // what matters of a Deployment is in its ReplicaSets
}

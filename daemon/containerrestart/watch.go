package containerrestart

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

const kind = "ContainerRecreateRequest"

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

// byPod is the index of requests by the name of their pod.
const byPod = "kruisekit.dev/pod-name"

// podNameOf is where a request is in the index. Requests are untyped, for the schema lets pass what their Go type
// cannot hold.
func podNameOf(o client.Object) []string {
	raw, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	name, _, err := stored.Value[string](raw, "spec", "podName")
	if err != nil || name == "" {
		return nil
	}
	return []string{name}
}

// podOf is the pod of a request.
func podOf(_ context.Context, o client.Object) []reconcile.Request {
	var all []reconcile.Request
	for _, name := range podNameOf(o) {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
	}
	return all
}

// ours are the requests of this node. The deletion of one makes room for the next, as its end does.
func (r *Reconciler) ours() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetLabels()[v1beta1.ContainerRecreateRequestNodeNameKey] == r.node
	})
}

// podEvents are those by which a pod of this node appears or goes.
func (r *Reconciler) podEvents() predicate.Predicate {
	here := func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && pod.Spec.NodeName == r.node
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return here(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return here(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return here(e.ObjectNew) && (!here(e.ObjectOld) ||
				e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil))
		},
	}
}

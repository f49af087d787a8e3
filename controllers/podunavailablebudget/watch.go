package podunavailablebudget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/pub"
)

// gather is how long other pods are waited for, so that pods that change together cost one pass.
const gather = 200 * time.Millisecond

// later adds requests after a pause that grows with their number. Each lists pods, so that a namespace with many
// budgets of the same pods would else take the workers from all others.
func later(q watches.Queue, requests []ctrl.Request) {
	pause := gather + gather/4*time.Duration(len(requests)-1)
	for _, request := range requests {
		q.AddAfter(request, pause)
	}
}

// rule is a budget as events of pods look at it.
func rule(o *podUnavailableBudget) (pub.Budget, error) {
	b, _ := pub.Read(o)
	return b, nil
}

// affected returns requests for the budgets of a namespace to which an event matters.
func (r *Reconciler) affected(ctx context.Context, namespace string, by func(pub.Budget) bool) []ctrl.Request {
	budgets, err := stored.List(ctx, r.api.Cached, gvk(), client.InNamespace(namespace))
	watches.Log(ctx, err, "Failed to find the budgets of a namespace")
	if len(budgets) == 0 {
		return nil
	}
	return r.rules.Affected(namespace, budgets, by)
}

func all(pub.Budget) bool { return true }

// budgetEvents requeues a budget at each of its events, and the others of the namespace when it is deleted: they may
// stamp its pods.
func (r *Reconciler) budgetEvents() handler.EventHandler {
	self := func(o client.Object, q watches.Queue) {
		q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watches.Queue) { self(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watches.Queue) { self(e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watches.Queue) {
			self(e.Object, q)
			for _, request := range r.affected(ctx, e.Object.GetNamespace(), all) {
				q.Add(request)
			}
		},
	}
}

// podEvents requeues the budgets that may guard a pod whose change may change their status or the stamp of the pod.
func (r *Reconciler) podEvents() handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q watches.Queue, before, after *corev1.Pod) {
		selects := func(b pub.Budget, pod *corev1.Pod) bool {
			return pod != nil && (b.Selects(pod.Labels) || b.Name == pub.Stamp(pod))
		}
		matters := sync.OnceValue(func() bool { return r.matters(before, after) })
		targets := r.targets(ctx, before, after)
		requests := r.affected(ctx, cmp.Or(after, before).Namespace, func(b pub.Budget) bool {
			return matters() && (selects(b, before) || selects(b, after) || b.Target != nil && targets(*b.Target))
		})
		later(q, requests)
	})
}

// targets returns a function that reports whether a target may control an object as it was before or after an event. A
// target of a kind that is not watched may.
func (r *Reconciler) targets(ctx context.Context, before, after client.Object) func(pub.Target) bool {
	chain := sync.OnceValues(func() (chain pub.Chain, err error) {
		for _, o := range []client.Object{before, after} {
			if reflect.ValueOf(o).IsNil() {
				continue
			}
			gvk := o.GetObjectKind().GroupVersionKind()
			chain = append(chain, pub.Target{Group: gvk.Group, Kind: gvk.Kind, Name: o.GetName()})
			if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
				above, failed := r.chainOf(ctx, replicas.Of(o.GetNamespace(), owner))
				chain, err = append(chain, above...), errors.Join(err, failed)
			}
		}
		return chain, err
	})
	return func(t pub.Target) bool {
		all, err := chain()
		return err != nil || slices.Contains(all, t) || !r.workloads.IsWatched(replicas.Workload{Target: t})
	}
}

// matters reports whether budgets look at a change of a pod.
func (r *Reconciler) matters(before, after *corev1.Pod) bool {
	if before == nil || after == nil {
		return pub.Active(cmp.Or(after, before))
	}
	var counts pub.Counts
	counts.Set(before, r.policy)
	return before.UID != after.UID || counts.Set(after, r.policy) || !maps.Equal(before.Labels, after.Labels) ||
		controllerOf(before) != controllerOf(after) || pub.Stamp(before) != pub.Stamp(after)
}

// watchable are the kinds of workloads that are watched where they are installed.
func watchable() []schema.GroupKind {
	kruise := appsv1beta1.GroupVersion.Group
	return []schema.GroupKind{
		replicas.Deployments(), replicas.ReplicaSets(),
		{Group: "apps", Kind: "StatefulSet"},
		{Group: kruise, Kind: "CloneSet"},
		{Group: kruise, Kind: "StatefulSet"},
	}
}

// watchWorkloads watches the metadata of workloads from the first budget on, so that a cluster without budgets pays
// nothing.
func (r *Reconciler) watchWorkloads() error {
	r.watching.Lock()
	defer r.watching.Unlock()
	if r.started {
		return nil
	}
	for _, kind := range watchable() {
		if r.workloads.IsWatched(replicas.Workload{Target: pub.Target{Group: kind.Group, Kind: kind.Kind}}) {
			continue
		}
		mapping, err := r.workloads.Mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look up %s: %w", kind, err)
		}
		if r.controller != nil {
			object := &metav1.PartialObjectMetadata{}
			object.SetGroupVersionKind(mapping.GroupVersionKind)
			if err := r.controller.Watch(source.Kind[client.Object](r.cache, object,
				r.workloadEvents(), changes())); err != nil {
				return fmt.Errorf("watch %s: %w", kind, err)
			}
		}
		r.workloads.Watch(kind, mapping.GroupVersionKind)
	}
	r.started = true
	return nil
}

// changes are the events after which the replicas or the owners of pods may be others.
func changes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			controllerOf(e.ObjectOld) != controllerOf(e.ObjectNew)
	}}
}

func controllerOf(o client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}

// workloadEvents requeues the budgets whose totals may depend on a workload: those whose target the workload is, or
// controls it, and those with selectors.
func (r *Reconciler) workloadEvents() handler.EventHandler {
	return watches.Transitions(func(ctx context.Context, q watches.Queue, before, after *metav1.PartialObjectMetadata) {
		targets := r.targets(ctx, before, after)
		later(q, r.affected(ctx, cmp.Or(after, before).Namespace, func(b pub.Budget) bool {
			return b.Target == nil || targets(*b.Target)
		}))
	})
}

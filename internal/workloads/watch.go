package workloads

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/workload"
)

// Controller is how the controller of a kind runs.
type Controller struct {
	Name    string
	Options controller.Options
	// Pods chooses the events of pods that matter.
	Pods WatchOptions
}

// Controller begins the controller of a kind, which reconciles a workload on events of the workload and of its pods. It
// comes before the manager starts. The kind adds its other events.
func (k *Kit) Controller(ctx context.Context, mgr ctrl.Manager, c Controller) (*builder.Builder, error) {
	bound, of := k.Bind(mgr, c.Name, c.Options), k.options.Kind
	if err := k.Setup(ctx, mgr, c.Name); err != nil {
		return nil, err
	}
	c.Pods.Now = k.Now
	changes := Changes(c.Pods)
	bound.For(stored.Untyped(of),
		builder.WithPredicates(conditions.IgnoreRewording(k.options.Scaling, k.options.Updating)))
	bound.Watches(&corev1.Pod{}, owned.ByAfter(of.Group, of.Kind, k.pause),
		builder.WithPredicates(owned.Concerns(of.Group, of.Kind), changes))
	if k.options.Stem != nil {
		bound.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(k.OfOrphan),
			builder.WithPredicates(owned.ConcernsOrphans(), changes))
	}
	return bound, nil
}

// The pause before a pass that a change of a pod asks for. A pass reads all pods of the workload, some microseconds for
// each, so that passes of a large workload whose pods change all the time take a twentieth of one core.
const (
	pausePerPod = 100 * time.Microsecond
	leastPause  = 10 * time.Millisecond
	mostPause   = time.Second
)

// pauseOf returns the pause of a workload by its number of pods; zero for a small one.
func pauseOf(pods int) time.Duration {
	if after := time.Duration(pods) * pausePerPod; after >= leastPause {
		return min(after, mostPause)
	}
	return 0
}

// pause returns the pause of a workload as of its last pass.
func (k *Kit) pause(name types.NamespacedName) time.Duration { return k.memory.Recall(name).pause }

// OfOrphan are the requests of the workloads that a pod without a controller can belong to by its name, see
// Options.Stem; none where there is no such workload.
func (k *Kit) OfOrphan(ctx context.Context, pod client.Object) []reconcile.Request {
	name, ok := k.options.Stem(pod.GetName())
	if !ok || metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	return k.Existing(ctx, types.NamespacedName{Namespace: pod.GetNamespace(), Name: name})
}

// cut is what the names of pods of a workload have of its name.
func (k *Kit) cut(name string) string {
	if k.options.Cut == nil {
		return name
	}
	return k.options.Cut(name)
}

// Existing is the request of a workload; none where the cache has no such workload.
func (k *Kit) Existing(ctx context.Context, name types.NamespacedName) []reconcile.Request {
	if err := k.Cached.Get(ctx, name, stored.Untyped(k.options.Kind)); err != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: name}}
}

// WatchOptions say which changes of pods pass.
type WatchOptions struct {
	// SkipQuiet leaves out changes in nothing that the plan of a workload reads, such as the status of one container.
	SkipQuiet bool
	// Policy is that of the workload's updates in place.
	Policy inplace.Policy
	// Now is the clock.
	Now func() time.Time
}

// Changes is a predicate of the changes that pass. Created and deleted pods always pass, a resync does not.
func Changes(o WatchOptions) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, isPod := e.ObjectOld.(*corev1.Pod)
		pod, isToo := e.ObjectNew.(*corev1.Pod)
		if !isPod || !isToo {
			return true
		}
		return old.ResourceVersion != pod.ResourceVersion && (!o.SkipQuiet || o.matters(old, pod))
	}}
}

// matters reports whether a workload may act on what changed in a pod.
func (o WatchOptions) matters(old, pod *corev1.Pod) bool {
	return old.Generation != pod.Generation || old.Spec.NodeName != pod.Spec.NodeName ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		workload.IsFinished(old) != workload.IsFinished(pod) || workload.IsReady(old) != workload.IsReady(pod) ||
		isReady(old) != isReady(pod) || !maps.Equal(old.Labels, pod.Labels) ||
		!slices.Equal(old.Finalizers, pod.Finalizers) ||
		!apiequality.Semantic.DeepEqual(old.OwnerReferences, pod.OwnerReferences) || stuck(old) != stuck(pod) || o.isDue(pod)
}

// isDue reports whether the next write of a pod's update is the workload's.
func (o WatchOptions) isDue(pod *corev1.Pod) bool {
	action, err := inplace.Next(inplace.Update{Pod: pod}, o.Policy, o.Now())
	if err != nil || action.Verdict == inplace.Write {
		return true
	}
	if lifecycle.StateOf(pod) != kruise.LifecycleStateUpdating {
		return false
	}
	done, _ := inplace.Completed(pod, o.Policy)
	return done
}

// isReady reports what the kubelet says, beside what workload.IsReady makes of it.
func isReady(pod *corev1.Pod) bool {
	c := lifecycle.ConditionOf(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// stuck returns the code of what keeps a pod from becoming ready; empty for nothing.
func stuck(pod *corev1.Pod) string {
	n, _ := workload.Stuck(pod)
	return n.Code
}

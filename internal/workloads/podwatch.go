package workloads

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/workload"
)

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

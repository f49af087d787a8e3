package cloneset

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/workload"
)

// podEvents are the events of pods that a set looks at.
func (o Options) podEvents(now func() time.Time) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, isPod := e.ObjectOld.(*corev1.Pod)
		pod, isToo := e.ObjectNew.(*corev1.Pod)
		if !isPod || !isToo {
			return true
		}
		return old.ResourceVersion != pod.ResourceVersion && (!o.SkipQuiet || o.matters(old, pod, now()))
	}}
}

// matters says whether a set may act on what changed in a pod. When in doubt it does: a pass that finds nothing to do is
// cheap, and a pass that was left out does not come back.
func (o Options) matters(old, pod *corev1.Pod, now time.Time) bool {
	return old.Generation != pod.Generation || old.Spec.NodeName != pod.Spec.NodeName ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		isFinished(old) != isFinished(pod) || workload.IsReady(old) != workload.IsReady(pod) || conditionIs(old, corev1.PodReady) != conditionIs(pod, corev1.PodReady) ||
		!maps.Equal(old.Labels, pod.Labels) || !slices.Equal(old.Finalizers, pod.Finalizers) ||
		!apiequality.Semantic.DeepEqual(old.OwnerReferences, pod.OwnerReferences) ||
		stuck(old) != stuck(pod) || o.isDue(pod, now)
}

// isDue says that a pod's update has come to where the next write is the set's.
func (o Options) isDue(pod *corev1.Pod, now time.Time) bool {
	action, err := inplace.Next(inplace.Update{Pod: pod}, o.policy(), now)
	if err != nil || action.Verdict == inplace.Write {
		return true
	}
	if lifecycle.StateOf(pod) != pub.LifecycleStateUpdating {
		return false
	}
	done, _ := inplace.Completed(pod, o.policy())
	return done
}

func conditionIs(pod *corev1.Pod, t corev1.PodConditionType) bool {
	c := lifecycle.ConditionOf(pod, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// stuck is the code of what keeps a pod from becoming ready; empty for nothing.
func stuck(pod *corev1.Pod) string {
	n, _ := workload.Stuck(pod)
	return n.Code
}

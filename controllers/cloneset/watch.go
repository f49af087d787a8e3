package cloneset

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// podEvents are the events of pods that a set looks at.
func (o Options) podEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, isPod := e.ObjectOld.(*corev1.Pod)
		pod, isToo := e.ObjectNew.(*corev1.Pod)
		if !isPod || !isToo {
			return true
		}
		return old.ResourceVersion != pod.ResourceVersion && (!o.SkipQuiet || o.matters(old, pod))
	}}
}

// matters says whether a set may act on what changed in a pod. When in doubt it does: a pass that finds nothing to do is
// cheap, and nobody asks again for one that was left out.
func (o Options) matters(old, pod *corev1.Pod) bool {
	return old.Generation != pod.Generation || old.Spec.NodeName != pod.Spec.NodeName ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		isFinished(old) != isFinished(pod) || isReady(old) != isReady(pod) || conditionIs(old, corev1.PodReady) != conditionIs(pod, corev1.PodReady) ||
		!maps.Equal(old.Labels, pod.Labels) || !slices.Equal(old.Finalizers, pod.Finalizers) ||
		!apiequality.Semantic.DeepEqual(old.OwnerReferences, pod.OwnerReferences) ||
		o.isDue(pod)
}

// isDue says that a pod's update has come to where the next write is the set's.
func (o Options) isDue(pod *corev1.Pod) bool {
	action, err := inplace.Next(inplace.Update{Pod: pod}, o.policy(), o.Now())
	if err != nil || action.Verdict == inplace.Write {
		return true
	}
	if lifecycle.StateOf(pod) != pub.LifecycleStateUpdating {
		return false
	}
	done, _ := inplace.Completed(pod, o.policy())
	return done
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func conditionIs(pod *corev1.Pod, t corev1.PodConditionType) bool {
	c := lifecycle.ConditionOf(pod, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// isInstalled says whether the API server has a kind of ours.
func isInstalled(mapper meta.RESTMapper, kind string) (bool, error) {
	gvk := v1beta1.GroupVersion.WithKind(kind)
	_, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up %s: %w", kind, err)
	}
	return true, nil
}

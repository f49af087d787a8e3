package pod

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// ReadinessOptions are the options of the step that adds the gate KruisePodReady.
type ReadinessOptions struct {
	// ForAll adds the gate to all pods, and not only to those of controllers of the group apps.kruise.io.
	ForAll bool
}

// Readiness returns the step that adds the gate KruisePodReady, by which a pod can be taken out of service.
func Readiness(o ReadinessOptions) Step {
	return Step{Name: scope.Readiness(o.ForAll).Step, Apply: func(_ context.Context, r Request) (Result, error) {
		if !o.ForAll && !ownedByKruise(r.Pod) || lifecycle.HasGate(r.Pod, kruise.KruisePodReadyConditionType) {
			return Result{}, nil
		}
		next := *r.Pod
		next.Spec.ReadinessGates = append(slices.Clone(next.Spec.ReadinessGates), corev1.PodReadinessGate{
			ConditionType: kruise.KruisePodReadyConditionType,
		})
		return Result{Pod: &next}, nil
	}}
}

// ownedByKruise reports whether the controller of a pod is of the group apps.kruise.io.
func ownedByKruise(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && strings.HasPrefix(owner.APIVersion, appsv1beta1.GroupVersion.Group+"/")
}

package pod

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// readiness appends the gate by which a pod can be taken out of service.
func (w *Webhook) readiness(_ context.Context, r *round) (*corev1.Pod, error) {
	if !w.options.ReadinessGateForAll && !ours(r.pod) || lifecycle.HasGate(r.pod, pub.KruisePodReadyConditionType) {
		return nil, nil //nolint:nilnil // nothing to do
	}
	next := *r.pod
	next.Spec.ReadinessGates = append(slices.Clone(next.Spec.ReadinessGates), corev1.PodReadinessGate{ConditionType: pub.KruisePodReadyConditionType})
	return &next, nil
}

// ours says that a controller of our own group has made the pod.
func ours(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && strings.HasPrefix(owner.APIVersion, appsv1beta1.GroupVersion.Group+"/")
}

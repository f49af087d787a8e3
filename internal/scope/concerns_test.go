package scope_test

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

// concerns is what a pod should be sent for, by the sets and by the words of the spec.
func concerns(in world, pod *corev1.Pod) (closed, open bool) {
	labels := places()[pod.Namespace]
	if _, is := labels["control-plane"]; is || pod.Namespace == in.Namespace || pod.Namespace == metav1.NamespaceSystem {
		return false, false
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: pod.Namespace, Labels: map[string]string{corev1.LabelMetadataName: pod.Namespace},
	}}
	maps.Copy(namespace.Labels, labels)
	var must, may []*sidecar.Set
	for _, object := range in.Sets {
		set, err := sidecar.Parse(object)
		if err != nil {
			panic(err)
		}
		if object.Annotations[appsv1beta1.SidecarSetInjectionFailurePolicyAnnotation] == "Ignore" {
			may = append(may, set)
		} else {
			must = append(must, set)
		}
	}
	picks := func(sets []*sidecar.Set) bool {
		s, err := sidecar.Select(pod, namespace, sets)
		return err == nil && len(s.Sets) > 0
	}
	gated := false
	for _, g := range pod.Spec.ReadinessGates {
		gated = gated || g.ConditionType == kruise.KruisePodReadyConditionType
	}
	owner := metav1.GetControllerOf(pod)
	owned := owner != nil && strings.HasPrefix(owner.APIVersion, "apps.kruise.io/")
	closed = picks(must) || in.Owned && !gated && owned ||
		slices.Contains(in.Closed, pod.Namespace) && owner != nil &&
			owner.APIVersion+"/"+owner.Kind != "apps/v1/ReplicaSet"
	probed := slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.LivenessProbe != nil })
	detached := in.Liveness && owned && probed && pod.Annotations[kruise.UsingEnhancedLivenessKey] == "true"
	if in.Launch && len(pod.Spec.Containers) > 1 {
		closed = closed || pod.Annotations[kruise.ContainerLaunchPriorityKey] == "Ordered"
		for _, c := range pod.Spec.Containers {
			for _, e := range c.Env {
				closed = closed || e.Name == kruise.ContainerLaunchPriorityEnvName
			}
		}
	}
	return closed || in.All && !gated, picks(may) || detached || slices.Contains(in.Open, pod.Namespace)
}

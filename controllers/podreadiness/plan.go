package podreadiness

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// fieldOwner owns the condition until another writer changes it.
const fieldOwner = "kruise-pod-readiness"

// waits reports whether a pod waits for its first condition.
func waits(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && lifecycle.HasGate(pod, kruise.KruisePodReadyConditionType) &&
		lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType) == nil
}

// condition returns the write that applies the condition and nothing else.
func (s *snapshot) condition() *write.Write {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	name := types.NamespacedName{Namespace: s.pod.Namespace, Name: s.pod.Name}
	return &write.Write{
		Verb: write.Patch, Object: stored.MetadataOf(kind, name), Subresource: write.Status,
		Type: types.ApplyPatchType, FieldOwner: fieldOwner, Body: write.Fields{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"namespace": s.pod.Namespace, "name": s.pod.Name, "uid": s.pod.UID},
			"status": map[string]any{"conditions": []map[string]any{{
				"type": kruise.KruisePodReadyConditionType, "status": corev1.ConditionTrue,
				"lastTransitionTime": metav1.NewTime(s.now),
			}}},
		},
	}
}

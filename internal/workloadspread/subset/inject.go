package subset

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Inject returns a pod with what a subset adds: tolerations, node affinity, the patch, and the annotation that names
// the subset. The patch changes neither the identity nor the owners of the pod.
func Inject(pod *corev1.Pod, s *Subset, m Match) (*corev1.Pod, error) {
	next := pod.DeepCopy()
	constrain(&next.Spec, s)
	next, err := patched(next, s.Patch.Raw)
	if err != nil {
		return nil, fmt.Errorf("apply the patch of subset %s: %w", s.Name, err)
	}
	if next.Spec.PriorityClassName != pod.Spec.PriorityClassName {
		// The API server computes both again, and rejects a pod whose values are those of another class.
		next.Spec.Priority = nil
		if equality.Semantic.DeepEqual(next.Spec.PreemptionPolicy, pod.Spec.PreemptionPolicy) {
			next.Spec.PreemptionPolicy = nil
		}
	}
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[kruise.MatchedWorkloadSpreadKey] = Text(m)
	return next, nil
}

// Earlier returns the subset that an earlier call for the same pod gave the pod; nil for none. An API server sends a
// pod once for each webhook entry, and a pod with the constraints of two subsets finds no node. The annotation alone
// proves nothing, for a pod template may have the annotation: the pod must also have the constraints of the subset, or
// without constraints what the patch adds. A subset that adds nothing to a pod is not proven.
func Earlier(ws *Spread, pod *corev1.Pod) (s *Subset, proven bool) {
	m, _ := MatchOf(pod)
	s = Named(ws, m.Subset)
	if s == nil || m.Name != ws.Name || !isInjected(pod, s) {
		return nil, false
	}
	return s, !isInjected(&corev1.Pod{}, s)
}

// isInjected reports whether a pod has the constraints of a subset, or without constraints what the patch adds.
func isInjected(pod *corev1.Pod, s *Subset) bool {
	before := pod.DeepCopy()
	constrain(&before.Spec, &Subset{})
	again, err := before.DeepCopy(), error(nil)
	if len(s.Tolerations)+len(s.PreferredNodeSelector) > 0 || s.RequiredNodeSelector != nil {
		constrain(&again.Spec, s)
	} else {
		again, err = patched(again, s.Patch.Raw)
	}
	return err == nil && equality.Semantic.DeepEqual(again, before)
}

// constrain adds to a pod spec, which it changes, the tolerations and the node affinity of a subset that the spec
// lacks.
func constrain(spec *corev1.PodSpec, s *Subset) {
	spec.Tolerations = union(spec.Tolerations, s.Tolerations)
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	a := spec.Affinity.NodeAffinity
	a.PreferredDuringSchedulingIgnoredDuringExecution = union(
		a.PreferredDuringSchedulingIgnoredDuringExecution, s.PreferredNodeSelector)
	if s.RequiredNodeSelector == nil {
		return
	}
	required := s.RequiredNodeSelector.DeepCopy()
	if selector := a.RequiredDuringSchedulingIgnoredDuringExecution; selector == nil ||
		len(selector.NodeSelectorTerms) == 0 {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{*required},
		}
		return
	}
	terms := a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = union(terms[i].MatchExpressions, required.MatchExpressions)
		terms[i].MatchFields = union(terms[i].MatchFields, required.MatchFields)
	}
}

// union returns a list with the items of another one that it lacks. The items are shared, and only read.
func union[T any](list, more []T) []T {
	list = slices.Clip(list)
	for i := range more {
		if !slices.ContainsFunc(list, func(have T) bool { return equality.Semantic.DeepEqual(have, more[i]) }) {
			list = append(list, more[i])
		}
	}
	return list
}

// patched returns a pod with a strategic merge patch applied. Its identity and its owners stay.
func patched(pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	if len(patch) == 0 {
		return pod, nil
	}
	next, err := merge(pod, patch)
	if err != nil {
		return nil, err
	}
	next.TypeMeta, next.Status = pod.TypeMeta, pod.Status
	next.Name, next.GenerateName, next.Namespace, next.UID, next.OwnerReferences = pod.Name, pod.GenerateName,
		pod.Namespace, pod.UID, pod.OwnerReferences
	next.ResourceVersion, next.CreationTimestamp, next.DeletionTimestamp = pod.ResourceVersion, pod.CreationTimestamp,
		pod.DeletionTimestamp
	next.Generation, next.ManagedFields, next.DeletionGracePeriodSeconds = pod.Generation, pod.ManagedFields,
		pod.DeletionGracePeriodSeconds
	return next, nil
}

// merge returns an object with a strategic merge patch applied.
func merge[T any](object *T, patch []byte) (*T, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	next := new(T)
	if data, err = strategicpatch.StrategicMergePatch(data, patch, next); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, next); err != nil {
		return nil, fmt.Errorf("decode what the patch returns: %w", err)
	}
	return next, nil
}

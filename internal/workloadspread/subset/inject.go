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

// Injected reports whether a pod has what a subset adds, as after an earlier call for the same pod.
func Injected(pod *corev1.Pod, s *Subset) bool {
	return constrained(pod, s) && (len(s.Patch.Raw) == 0 || hasPatch(pod, s.Patch.Raw))
}

// Earlier returns the subset that an earlier call for the same pod gave the pod; nil for none. An API server sends a
// pod once for each webhook entry, and a pod with the constraints of two subsets finds no node. The annotation alone
// proves nothing, for a pod template may have the annotation: the pod must also have the constraints of the subset, or
// without constraints what the patch adds.
func Earlier(ws *Spread, pod *corev1.Pod) *Subset {
	m, is := MatchOf(pod)
	if !is || m.Name != ws.Name {
		return nil
	}
	for i := range ws.Spec.Subsets {
		s := &ws.Spec.Subsets[i]
		switch constraints := len(s.Tolerations) + len(s.PreferredNodeSelector); {
		case s.Name != m.Subset:
		case constraints > 0 || s.RequiredNodeSelector != nil:
			if constrained(pod, s) {
				return s
			}
		case patchedAlready(pod, s.Patch.Raw):
			return s
		}
	}
	return nil
}

// constrained reports whether a pod has the tolerations and the node affinity that a subset adds.
func constrained(pod *corev1.Pod, s *Subset) bool {
	for i := range s.Tolerations {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(t, s.Tolerations[i])
		}) {
			return false
		}
	}
	a := &corev1.NodeAffinity{}
	if pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
		a = pod.Spec.Affinity.NodeAffinity
	}
	for i := range s.PreferredNodeSelector {
		if !slices.ContainsFunc(a.PreferredDuringSchedulingIgnoredDuringExecution,
			func(t corev1.PreferredSchedulingTerm) bool {
				return equality.Semantic.DeepEqual(t, s.PreferredNodeSelector[i])
			}) {
			return false
		}
	}
	return s.RequiredNodeSelector == nil ||
		requires(a.RequiredDuringSchedulingIgnoredDuringExecution, s.RequiredNodeSelector)
}

// patchedAlready reports whether a patch changes nothing of a pod, and changed the pod before: it changes something of
// an empty one.
func patchedAlready(pod *corev1.Pod, patch []byte) bool {
	if len(patch) == 0 {
		return false
	}
	again, err := patched(pod.DeepCopy(), patch)
	if err != nil || !equality.Semantic.DeepEqual(again, pod) {
		return false
	}
	empty := &corev1.Pod{}
	first, err := patched(empty.DeepCopy(), patch)
	return err == nil && !equality.Semantic.DeepEqual(first, empty)
}

// requires reports whether every term of a selector has the requirements of another term.
func requires(selector *corev1.NodeSelector, term *corev1.NodeSelectorTerm) bool {
	if selector == nil || len(selector.NodeSelectorTerms) == 0 {
		return false
	}
	within := func(have, want []corev1.NodeSelectorRequirement) bool {
		for i := range want {
			if !slices.ContainsFunc(have, func(r corev1.NodeSelectorRequirement) bool {
				return equality.Semantic.DeepEqual(r, want[i])
			}) {
				return false
			}
		}
		return true
	}
	for i := range selector.NodeSelectorTerms {
		if t := &selector.NodeSelectorTerms[i]; !within(t.MatchExpressions, term.MatchExpressions) ||
			!within(t.MatchFields, term.MatchFields) {
			return false
		}
	}
	return true
}

// constrain adds the tolerations and the node affinity of a subset to a pod spec, which it changes.
func constrain(spec *corev1.PodSpec, s *Subset) {
	spec.Tolerations = append(slices.Clip(spec.Tolerations), s.Tolerations...)
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	a := spec.Affinity.NodeAffinity
	for i := range s.PreferredNodeSelector {
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			*s.PreferredNodeSelector[i].DeepCopy())
	}
	required := s.RequiredNodeSelector
	switch {
	case required == nil:
	case a.RequiredDuringSchedulingIgnoredDuringExecution == nil ||
		len(a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) == 0:
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{*required.DeepCopy()},
		}
	default:
		terms := a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for i := range terms {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, required.DeepCopy().MatchExpressions...)
			terms[i].MatchFields = append(terms[i].MatchFields, required.DeepCopy().MatchFields...)
		}
	}
}

// patched returns a pod with a strategic merge patch applied. Its identity and its owners stay.
func patched(pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	if len(patch) == 0 {
		return pod, nil
	}
	was, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encode pod: %w", err)
	}
	is, err := strategicpatch.StrategicMergePatch(was, patch, &corev1.Pod{})
	if err != nil {
		return nil, err
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(is, next); err != nil {
		return nil, fmt.Errorf("decode the patched pod: %w", err)
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

// CheckPatch returns why a patch cannot be applied to pods; nil where it can.
func CheckPatch(pod *corev1.Pod, patch []byte) error {
	_, err := patched(pod.DeepCopy(), patch)
	return err
}

// metadataOf returns the labels and the annotations of a pod with the metadata of a subset's patch applied.
func metadataOf(pod *corev1.Pod, patch []byte) (labels, annotations map[string]string, err error) {
	if len(patch) == 0 {
		return pod.Labels, pod.Annotations, nil
	}
	var part struct {
		Metadata map[string]any `json:"metadata,omitempty"`
	}
	if err := json.Unmarshal(patch, &part); err != nil {
		return nil, nil, fmt.Errorf("decode patch: %w", err)
	}
	data, err := json.Marshal(part)
	if err != nil {
		return nil, nil, fmt.Errorf("encode patch: %w", err)
	}
	bare := &corev1.Pod{}
	bare.Labels, bare.Annotations = pod.Labels, pod.Annotations
	next, err := patched(bare, data)
	if err != nil {
		return nil, nil, err
	}
	return next.Labels, next.Annotations, nil
}

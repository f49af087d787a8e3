package subset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Placement is what the pods of a subset have besides those of the other subsets.
type Placement struct {
	// Term is added to each required node selector term of the pods.
	Term corev1.NodeSelectorTerm
	// Tolerations are added to those of the pods.
	Tolerations []corev1.Toleration
	// Patch is a strategic merge patch, applied last. Empty for none.
	Patch []byte
}

// PlaceTemplate returns the pod template of a subset of a UnitedDeployment. The given one stays as it is.
func PlaceTemplate(template *corev1.PodTemplateSpec, p Placement) (*corev1.PodTemplateSpec, error) {
	placed := template.DeepCopy()
	require(&placed.Spec, &p.Term)
	placed.Spec.Tolerations = append(placed.Spec.Tolerations, p.Tolerations...)
	if len(p.Patch) == 0 {
		return placed, nil
	}
	merged, err := merge(placed, p.Patch)
	if err != nil {
		return nil, fmt.Errorf("apply patch: %w", err)
	}
	return merged, nil
}

// require adds the requirements of a term to each required term of a pod.
func require(pod *corev1.PodSpec, term *corev1.NodeSelectorTerm) {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return
	}
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.NodeAffinity == nil {
		pod.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{}
	}
	if len((*required).NodeSelectorTerms) == 0 {
		(*required).NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range (*required).NodeSelectorTerms {
		have, more := &(*required).NodeSelectorTerms[i], term.DeepCopy()
		have.MatchExpressions = append(have.MatchExpressions, more.MatchExpressions...)
		have.MatchFields = append(have.MatchFields, more.MatchFields...)
	}
}

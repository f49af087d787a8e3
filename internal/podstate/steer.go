package podstate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// Steer returns a new pod with what is recorded of the pod of its name: required labels as node selectors, preferred
// labels as preferred affinity. Recorded annotations that the pod lacks are added where the annotation
// kruisekit.dev/restore-pod-annotations asks for them. Steer returns nil for a pod that stays as it is, and changes
// neither argument.
func Steer(pod *corev1.Pod, s *State) *corev1.Pod {
	r, ok := s.Status.PodStates[pod.Name]
	if !ok || pod.Name == "" {
		return nil
	}
	selector, preferred, annotations := requiredOf(s, r), terms(s, r), restored(pod, s, r)
	if len(selector)+len(preferred) > 0 {
		annotations = merged(annotations, map[string]string{kruise.InjectedPersistentPodStateKey: s.Name})
	}
	if len(annotations) == 0 {
		return nil
	}
	next := *pod
	next.Annotations = merged(pod.Annotations, annotations)
	if len(selector) > 0 {
		next.Spec.NodeSelector = merged(pod.Spec.NodeSelector, selector)
	}
	if len(preferred) > 0 {
		next.Spec.Affinity = prefer(pod.Spec.Affinity, preferred)
	}
	if apiequality.Semantic.DeepEqual(pod, &next) {
		return nil // an earlier call did
	}
	return &next
}

// merged returns a new map with the entries of both; those of the second win.
func merged(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// terms returns the preferred terms of a record. It skips those that the API server would reject.
func terms(s *State, r record) []corev1.PreferredSchedulingTerm {
	var wanted []corev1.PreferredSchedulingTerm
	for i := range s.Spec.PreferredPersistentTopology {
		term := &s.Spec.PreferredPersistentTopology[i]
		var all []corev1.NodeSelectorRequirement
		for _, key := range term.Preference.Keys {
			if value, ok := r.NodeTopologyLabels[key]; ok {
				all = append(all, corev1.NodeSelectorRequirement{
					Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
				})
			}
		}
		if len(all) > 0 && term.Weight >= 1 && term.Weight <= 100 {
			wanted = append(wanted, corev1.PreferredSchedulingTerm{
				Weight: term.Weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: all},
			})
		}
	}
	return wanted
}

// prefer returns an affinity with the preferred terms that it lacks.
func prefer(a *corev1.Affinity, wanted []corev1.PreferredSchedulingTerm) *corev1.Affinity {
	affinity, nodes := &corev1.Affinity{}, &corev1.NodeAffinity{}
	if a != nil {
		*affinity = *a
	}
	if affinity.NodeAffinity != nil {
		*nodes = *affinity.NodeAffinity
	}
	all := slices.Clone(nodes.PreferredDuringSchedulingIgnoredDuringExecution)
	for i := range wanted {
		if !slices.ContainsFunc(all, func(t corev1.PreferredSchedulingTerm) bool {
			return apiequality.Semantic.DeepEqual(t, wanted[i])
		}) {
			all = append(all, wanted[i])
		}
	}
	nodes.PreferredDuringSchedulingIgnoredDuringExecution = all
	affinity.NodeAffinity = nodes
	return affinity
}

// restored returns the annotations that the pod lacks.
func restored(pod *corev1.Pod, s *State, r record) map[string]string {
	if s.Annotations[v1beta1.AnnotationRestorePodAnnotations] != "true" {
		return nil
	}
	lacking := values(r.Annotations, annotationKeys(s))
	maps.DeleteFunc(lacking, func(key, _ string) bool { _, ok := pod.Annotations[key]; return ok })
	return lacking
}

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
	r, is := s.Status.PodStates[pod.Name]
	if !is || pod.Name == "" {
		return nil
	}
	next := *pod
	topology := selectNodes(&next, s, r)
	topology = preferNodes(&next, s, r) || topology
	annotations := restored(pod, s, r)
	if !topology && len(annotations) == 0 {
		return nil
	}
	if topology {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[kruise.InjectedPersistentPodStateKey] = s.Name
	}
	next.Annotations = maps.Clone(pod.Annotations)
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	maps.Copy(next.Annotations, annotations)
	if apiequality.Semantic.DeepEqual(pod, &next) {
		return nil // an earlier call did
	}
	return &next
}

// selectNodes adds the node selectors, and reports whether there are any.
func selectNodes(pod *corev1.Pod, s *State, r record) bool {
	wanted := those(r.NodeTopologyLabels, required(s))
	if len(wanted) == 0 {
		return false
	}
	all := maps.Clone(pod.Spec.NodeSelector)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, wanted)
	pod.Spec.NodeSelector = all
	return true
}

// preferNodes adds the preferred terms that the pod lacks, and reports whether there are any.
func preferNodes(pod *corev1.Pod, s *State, r record) bool {
	var wanted []corev1.PreferredSchedulingTerm
	for i := range s.Spec.PreferredPersistentTopology {
		term := &s.Spec.PreferredPersistentTopology[i]
		var all []corev1.NodeSelectorRequirement
		for _, key := range term.Preference.Keys {
			if value, is := r.NodeTopologyLabels[key]; is {
				all = append(all, corev1.NodeSelectorRequirement{
					Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
				})
			}
		}
		if len(all) > 0 && term.Weight >= 1 && term.Weight <= 100 { // the API server would reject the pod
			wanted = append(wanted, corev1.PreferredSchedulingTerm{
				Weight: term.Weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: all},
			})
		}
	}
	if len(wanted) == 0 {
		return false
	}
	affinity, nodes := &corev1.Affinity{}, &corev1.NodeAffinity{}
	if pod.Spec.Affinity != nil {
		*affinity = *pod.Spec.Affinity
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
	affinity.NodeAffinity, pod.Spec.Affinity = nodes, affinity
	return true
}

// restored returns the annotations that the pod lacks.
func restored(pod *corev1.Pod, s *State, r record) map[string]string {
	if s.Annotations[v1beta1.AnnotationRestorePodAnnotations] != "true" {
		return nil
	}
	lacking := those(r.Annotations, annotationKeys(s))
	maps.DeleteFunc(lacking, func(key, _ string) bool { _, has := pod.Annotations[key]; return has })
	return lacking
}

package podstate

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// State is a PersistentPodState.
type State = v1beta1.PersistentPodState

// record is what is recorded of a pod.
type record = v1beta1.PodState

// Target is a workload without the version of its kind.
type Target struct {
	schema.GroupKind

	Name string
}

// TargetOf returns the target of a PersistentPodState; false where apiVersion cannot be parsed.
func TargetOf(s *State) (Target, bool) {
	ref := s.Spec.TargetReference
	return Refer(ref.APIVersion, ref.Kind, ref.Name)
}

// Refer returns the target of a reference; false where apiVersion cannot be parsed.
func Refer(apiVersion, kind, name string) (Target, bool) {
	version, err := schema.ParseGroupVersion(apiVersion)
	return Target{schema.GroupKind{Group: version.Group, Kind: kind}, name}, err == nil
}

// Targets returns the kinds that every PersistentPodState may refer to.
func Targets() []schema.GroupKind {
	return []schema.GroupKind{
		{Group: "apps", Kind: "StatefulSet"}, {Group: v1beta1.GroupVersion.Group, Kind: "StatefulSet"},
	}
}

// required returns the keys of the required labels.
func required(s *State) []string {
	if s.Spec.RequiredPersistentTopology == nil {
		return nil
	}
	return s.Spec.RequiredPersistentTopology.Keys
}

// labelKeys returns the keys of all labels to record, sorted.
func labelKeys(s *State) []string {
	keys := slices.Clone(required(s))
	for i := range s.Spec.PreferredPersistentTopology {
		keys = append(keys, s.Spec.PreferredPersistentTopology[i].Preference.Keys...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// annotationKeys returns the keys of the annotations to record, sorted.
func annotationKeys(s *State) []string {
	keys := make([]string, 0, len(s.Spec.PersistentPodAnnotations))
	for _, a := range s.Spec.PersistentPodAnnotations {
		keys = append(keys, a.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// ReleaseAfter returns how long a pod waits for a node with its required labels; nil where the pod waits for ever. An
// error is about the annotation.
func ReleaseAfter(s *State) (*time.Duration, error) {
	text := s.Annotations[v1beta1.AnnotationReleaseMissingTopologyAfter]
	if text == "" {
		return nil, nil
	}
	after, err := time.ParseDuration(text)
	if err == nil && after < 0 {
		err = errors.New("must not be negative")
	}
	if err != nil {
		return nil, err
	}
	return &after, nil
}

// active reports whether a pod neither ended nor terminates.
func active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// Ready reports whether a pod is active, ready and on a node.
func Ready(pod *corev1.Pod) bool {
	return active(pod) && pod.Spec.NodeName != "" &&
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
}

// values returns the values of keys; nil for none.
func values(all map[string]string, keys []string) map[string]string {
	var found map[string]string
	for _, k := range keys {
		if v, ok := all[k]; ok {
			if found == nil {
				found = make(map[string]string, len(keys))
			}
			found[k] = v
		}
	}
	return found
}

// hasKeys reports whether a map has exactly the keys, which are distinct.
func hasKeys(m map[string]string, keys []string) bool {
	return len(m) == len(keys) && !slices.ContainsFunc(keys, func(k string) bool { _, ok := m[k]; return !ok })
}

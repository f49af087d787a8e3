package podstate

import (
	"cmp"
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
	Group, Kind, Name string
}

// GroupKind returns the kind of the workload.
func (t Target) GroupKind() schema.GroupKind { return schema.GroupKind{Group: t.Group, Kind: t.Kind} }

// TargetOf returns the target of a PersistentPodState; false where apiVersion cannot be parsed.
func TargetOf(s *State) (Target, bool) { return Refer(s.Spec.TargetReference) }

// Refer returns the target of a reference; false where apiVersion cannot be parsed.
func Refer(ref v1beta1.TargetReference) (Target, bool) {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return Target{Group: version.Group, Kind: ref.Kind, Name: ref.Name}, err == nil
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
	return compact(keys)
}

// annotationKeys returns the keys of the annotations to record, sorted.
func annotationKeys(s *State) []string {
	keys := make([]string, 0, len(s.Spec.PersistentPodAnnotations))
	for _, a := range s.Spec.PersistentPodAnnotations {
		keys = append(keys, a.Key)
	}
	return compact(keys)
}

func compact(keys []string) []string {
	slices.Sort(keys)
	return slices.Compact(keys)
}

// ReleaseAfter returns how long a pod waits for a node with its required labels; false where the pod waits for ever. An
// error is about the annotation.
func ReleaseAfter(s *State) (after time.Duration, is bool, err error) {
	text := s.Annotations[v1beta1.AnnotationReleaseMissingTopologyAfter]
	if text == "" {
		return 0, false, nil
	}
	after, err = ParseRelease(text)
	return after, err == nil, err
}

// ParseRelease parses the value of the annotation kruisekit.dev/release-missing-topology-after.
func ParseRelease(text string) (time.Duration, error) {
	after, err := time.ParseDuration(text)
	if err == nil && after < 0 {
		err = errNegative
	}
	return after, err
}

type constError string

// Error returns the text.
func (e constError) Error() string { return string(e) }

const errNegative constError = "must not be negative"

// active reports whether a pod neither ended nor terminates.
func active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// Ready reports whether a pod is active, ready and on a node.
func Ready(pod *corev1.Pod) bool {
	if !active(pod) || pod.Spec.NodeName == "" {
		return false
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	return i >= 0 && pod.Status.Conditions[i].Status == corev1.ConditionTrue
}

// byName sorts pods, so that their order does not matter.
func byName(pods []*corev1.Pod) []*corev1.Pod {
	return slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}

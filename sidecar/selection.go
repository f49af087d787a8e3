package sidecar

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// Selection is the sets that a new pod gets.
type Selection struct {
	// Sets by name.
	Sets []*Set
	// Notes are the reasons why the pod does not get sets that match.
	Notes []note.Note
}

// Select returns the sets that a new pod gets. Without a namespace (nil), sets that select namespaces are left out,
// with a note. A set whose injection is paused is left out, and hides no base. A selector that cannot be parsed is an
// error, a *FieldError, if it might select the pod.
func Select(pod *corev1.Pod, namespace *corev1.Namespace, sets []*Set) (Selection, error) {
	var s Selection
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		s.Notes = append(s.Notes, newNote(NotePodInactive, "", "the pod is over or being deleted, and gets nothing"))
		return s, nil
	}
	var matched []*Set
	var wrong *FieldError
	for _, set := range sets {
		ok, err := set.matches(pod, namespace, &s.Notes)
		switch paused := set.object.Spec.InjectionStrategy.Paused; {
		case paused && ok:
			s.Notes = append(s.Notes, newNote(NotePaused, set.Name(), "injection is paused"))
		case paused:
		case err != nil && (wrong == nil || err.Set < wrong.Set):
			wrong = err
		case ok:
			matched = append(matched, set)
		}
	}
	if wrong != nil {
		return Selection{}, wrong
	}
	s.Sets = unhidden(byName(matched), &s.Notes)
	slices.SortStableFunc(s.Notes, func(a, b note.Note) int { return cmp.Compare(a.Object, b.Object) })
	return s, nil
}

// matches compares the pod first: few sets need the namespace.
func (s *Set) matches(pod *corev1.Pod, namespace *corev1.Namespace, notes *[]note.Note) (bool, *FieldError) {
	ok, inPod := s.selector.matches(pod.Labels)
	if !ok && inPod == nil {
		return false, nil
	}
	if s.namespaces != nil {
		if namespace == nil {
			*notes = append(*notes,
				newNote(NoteNamespaceUnknown, s.Name(), "the namespace of the pod is not known, so the set is left out"))
			return false, nil
		}
		switch ok, err := s.namespaces.matches(labelsOf(namespace)); {
		case err != nil:
			return false, &FieldError{Set: s.Name(), Field: fieldNamespaceSelector, Err: err}
		case !ok:
			return false, nil
		}
	}
	if inPod != nil {
		return false, &FieldError{Set: s.Name(), Field: fieldSelector, Err: inPod}
	}
	return true, nil
}

// unhidden drops the bases of canaries.
func unhidden(sets []*Set, notes *[]note.Note) []*Set {
	bases := map[string]string{}
	for _, set := range sets {
		if base := BaseOf(set.object); base != "" {
			bases[base] = set.Name()
		}
	}
	if len(bases) == 0 {
		return sets
	}
	return slices.DeleteFunc(sets, func(set *Set) bool {
		canary, hidden := bases[set.Name()]
		if hidden {
			*notes = append(*notes, newNote(NoteHidden, set.Name(), fmt.Sprintf("the pod gets its canary %s", canary)))
		}
		return hidden
	})
}

// MatchesPod reports whether the set selects the labels of a pod. An empty selector selects nothing.
func MatchesPod(set *appsv1beta1.SidecarSet, pod *corev1.Pod) (bool, error) {
	ok, err := podQuery(set).matches(pod.Labels)
	return ok, fieldError(set, fieldSelector, err)
}

// MatchesNamespace reports whether the set selects a namespace; without a selector it selects all. An unknown namespace
// (nil) matches no selector.
func MatchesNamespace(set *appsv1beta1.SidecarSet, namespace *corev1.Namespace) (bool, error) {
	if set.Spec.NamespaceSelector == nil {
		return true, nil
	}
	if namespace == nil {
		return false, nil
	}
	ok, err := readQuery(set.Spec.NamespaceSelector).matches(labelsOf(namespace))
	return ok, fieldError(set, fieldNamespaceSelector, err)
}

// labelsOf returns the labels of a namespace with the one that API servers add for its name, which an object in a test
// may lack.
func labelsOf(namespace *corev1.Namespace) map[string]string {
	if _, ok := namespace.Labels[corev1.LabelMetadataName]; ok || namespace.Name == "" {
		return namespace.Labels
	}
	labels := maps.Clone(namespace.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = namespace.Name
	return labels
}

// Namespaces returns the names of the only namespaces where the set can match, for an index: a pod can get only sets of
// its namespace and those without any (nil), which can match anywhere.
func Namespaces(set *appsv1beta1.SidecarSet) []string {
	s := set.Spec.NamespaceSelector
	if s == nil {
		return nil
	}
	if name, ok := s.MatchLabels[corev1.LabelMetadataName]; ok {
		return []string{name}
	}
	for _, e := range s.MatchExpressions {
		if e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0 {
			names := slices.Sorted(slices.Values(e.Values))
			return slices.Compact(names)
		}
	}
	return nil
}

// BaseOf returns the name of the set that a canary replaces in pods; empty for a set that is no canary, or names
// itself.
func BaseOf(set *appsv1beta1.SidecarSet) string {
	base := set.Annotations[appsv1beta1.SidecarSetBaseAnnotation]
	if set.Annotations[appsv1beta1.SidecarSetCanaryAnnotation] != "true" || base == set.Name {
		return ""
	}
	return base
}

func byName(sets []*Set) []*Set {
	return slices.SortedFunc(slices.Values(sets), func(a, b *Set) int { return cmp.Compare(a.Name(), b.Name()) })
}

package sidecar

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Selection is which sets a new pod gets.
type Selection struct {
	// Sets by name.
	Sets []*appsv1beta1.SidecarSet
	// Notes say which sets would match, and why the pod does not get them.
	Notes []Note
}

// Select says which of the sets a new pod gets. Without a namespace (nil) those that select namespaces are left out, with a
// note. A set whose injection is paused is left out, and hides no base then. A selector that cannot be parsed is an
// error, since it might have meant the pod.
func Select(pod *corev1.Pod, namespace *corev1.Namespace, sets []*appsv1beta1.SidecarSet) (Selection, error) {
	var s Selection
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		s.Notes = append(s.Notes, Note{Code: NotePodInactive, Text: "the pod is over or being deleted, and gets nothing"})
		return s, nil
	}
	var matched []*appsv1beta1.SidecarSet
	for _, set := range byName(sets) {
		ok, err := MatchesPod(set, pod)
		if ok && err == nil && set.Spec.NamespaceSelector != nil && namespace == nil {
			s.Notes = append(s.Notes, Note{NoteNamespaceUnknown, set.Name, "the namespace of the pod is not known, so the set is left out"})
			continue
		}
		if ok && err == nil {
			ok, err = MatchesNamespace(set, namespace)
		}
		switch paused := set.Spec.InjectionStrategy.Paused; {
		case paused && ok:
			s.Notes = append(s.Notes, Note{NotePaused, set.Name, "injection is paused"})
		case paused:
		case err != nil:
			return Selection{}, fmt.Errorf("select by sidecarset %s: %w", set.Name, err)
		case ok:
			matched = append(matched, set)
		}
	}
	bases := map[string]string{}
	for _, set := range matched {
		if base := baseOf(set); base != "" {
			bases[base] = set.Name
		}
	}
	for _, set := range matched {
		if canary, hidden := bases[set.Name]; hidden {
			s.Notes = append(s.Notes, Note{NoteHidden, set.Name, fmt.Sprintf("the pod gets its canary %s", canary)})
			continue
		}
		s.Sets = append(s.Sets, set)
	}
	return s, nil
}

// MatchesPod says whether the set selects the labels of a pod. An empty selector selects nothing.
func MatchesPod(set *appsv1beta1.SidecarSet, pod *corev1.Pod) (bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return false, fmt.Errorf("parse selector: %w", err)
	}
	return !selector.Empty() && selector.Matches(labels.Set(pod.Labels)), nil
}

// MatchesNamespace says whether the set selects a namespace; without a selector it selects all. A namespace that is not
// known (nil) matches no selector.
func MatchesNamespace(set *appsv1beta1.SidecarSet, namespace *corev1.Namespace) (bool, error) {
	if set.Spec.NamespaceSelector == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.NamespaceSelector)
	if err != nil {
		return false, fmt.Errorf("parse namespaceSelector: %w", err)
	}
	return namespace != nil && selector.Matches(labels.Set(namespace.Labels)), nil
}

// Namespaces are the names of the only namespaces where the set can match, for an index: a pod needs to be shown no other
// sets than those of its namespace and those without any (nil), which can match anywhere.
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

// baseOf is the name of the set that this one takes the place of, if it is a canary.
func baseOf(set *appsv1beta1.SidecarSet) string {
	base := set.Annotations[appsv1beta1.SidecarSetBaseAnnotation]
	if set.Annotations[appsv1beta1.SidecarSetCanaryAnnotation] != "true" || base == set.Name {
		return ""
	}
	return base
}

func byName(sets []*appsv1beta1.SidecarSet) []*appsv1beta1.SidecarSet {
	return slices.SortedFunc(slices.Values(sets), func(a, b *appsv1beta1.SidecarSet) int { return cmp.Compare(a.Name, b.Name) })
}

package subset

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/pub"
)

// Match is the subset that the annotation of a pod names.
type Match = kruise.MatchedWorkloadSpread

// Outside is the name of the subset of pods that belong to no subset of the spec.
const Outside = "kruise.io/workloadspread-fake-subset-name"

// MatchOf returns the subset that a pod is annotated with; false where the annotation is missing or cannot be read.
func MatchOf(pod *corev1.Pod) (Match, bool) {
	text, ok := pod.Annotations[kruise.MatchedWorkloadSpreadKey]
	if !ok {
		return Match{}, false
	}
	var m Match
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Name == "" {
		return Match{}, false
	}
	return m, true
}

// TargetOf returns the target of a WorkloadSpread without its version; false where it has none.
func TargetOf(ws *Spread) (pub.Target, bool) {
	ref := ws.Spec.TargetReference
	if ref == nil {
		return pub.Target{}, false
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return pub.Target{Group: version.Group, Kind: ref.Kind, Name: ref.Name}, err == nil
}

// Text returns the value of the annotation.
func Text(m Match) string {
	data, err := json.Marshal(m)
	if err != nil { // strings can be encoded
		return ""
	}
	return string(data)
}

// IDOf returns the identity of a pod in the books.
func IDOf(pod *corev1.Pod) string {
	if m, is := MatchOf(pod); is && m.UID != "" {
		return m.UID
	}
	return pod.Name
}

// Active reports whether a pod counts: it is neither finished nor terminating.
func Active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// Selects reports whether the filter of a WorkloadSpread selects labels. A filter without a selector selects all, and
// one that cannot be read selects none.
func Selects(ws *Spread, podLabels map[string]string) bool {
	if ws.Spec.TargetFilter == nil || ws.Spec.TargetFilter.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(ws.Spec.TargetFilter.Selector)
	return err == nil && selector.Matches(labels.Set(podLabels))
}

// Admits reports whether admission gives pods with these labels a subset. A filter without a selector admits none, as
// in the reference: its pods are counted alone.
func Admits(ws *Spread, podLabels map[string]string) bool {
	if f := ws.Spec.TargetFilter; f != nil && f.Selector == nil {
		return false
	}
	return Selects(ws, podLabels)
}

// DefaultVersioned are the kinds whose pods are counted by version.
func DefaultVersioned() []string { return []string{"deployment", "replicaset"} }

// VersionOf returns the version of a pod. Only the pods of controllers of some kinds, in lower case, have versions. The
// controllers of the pods of a Deployment are ReplicaSets.
func VersionOf(pod *corev1.Pod, versioned []string) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !slices.ContainsFunc(versioned, func(kind string) bool {
		return strings.EqualFold(kind, owner.Kind) || strings.EqualFold(kind, "deployment") && owner.Kind == "ReplicaSet"
	}) {
		return appsv1beta1.WorkloadSpreadVersionIgnored
	}
	return cmp.Or(
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
		shortHash(pod.Labels[appsv1.ControllerRevisionHashLabelKey]),
		appsv1beta1.WorkloadSpreadVersionIgnored,
	)
}

// shortHash returns the last segment of the name of a revision.
func shortHash(revision string) string { return revision[strings.LastIndex(revision, "-")+1:] }

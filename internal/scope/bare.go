package scope

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Window is a time in which entries were missing or changed.
type Window struct{ Since, Until time.Time }

// Contains reports whether a pod was created in the window, and is still there to be recreated.
func (w Window) Contains(pod *corev1.Pod) bool {
	t := pod.CreationTimestamp.Time // in whole seconds
	return !t.Before(w.Since.Truncate(time.Second)) && !t.After(w.Until) && pod.DeletionTimestamp == nil &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// Bare returns the sets that select a pod and that the pod does not record, sorted: the pod was created without its
// webhook, or before the set, which is none of them. Own is the namespace of the webhook.
func Bare(pod *corev1.Pod, namespace *corev1.Namespace, sets []*unstructured.Unstructured, own string) []string {
	sent, err := metav1.LabelSelectorAsSelector(Sent(own))
	if err != nil || !sent.Matches(labels.Set(namespace.Labels)) {
		return nil
	}
	records := strings.Split(pod.Annotations[kruise.SidecarSetInjectedListKey], ",")
	var candidates []*sidecar.Set
	for _, raw := range sets {
		set, invalid, err := Decode(raw)
		if err != nil || invalid != nil || Ignores(set) || pod.CreationTimestamp.Before(&set.CreationTimestamp) {
			continue
		}
		if parsed, err := sidecar.Parse(set); err == nil {
			candidates = append(candidates, parsed)
		}
	}
	selection, err := sidecar.Select(pod, namespace, candidates)
	if err != nil {
		return nil // the webhook would have rejected the pod
	}
	var bare []string
	for _, set := range selection.Sets {
		if !slices.Contains(records, set.Name()) {
			bare = append(bare, set.Name())
		}
	}
	slices.Sort(bare)
	return bare
}

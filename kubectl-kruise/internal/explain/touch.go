package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Sidecars returns the SidecarSets that a pod has, or would get if it were created now.
func Sidecars(pod *corev1.Pod, namespace *corev1.Namespace, sets []*v1beta1.SidecarSet) []string {
	injected, err := sidecar.ReadInjected(pod.Annotations[kruise.SidecarSetHashKey])
	if err != nil {
		return []string{"annotation " + kruise.SidecarSetHashKey + " cannot be read: " + err.Error()}
	}
	var lines []string
	for _, set := range sets {
		record, ok := injected[set.Name]
		inNamespace, err := sidecar.MatchesNamespace(set, namespace)
		selects, failed := sidecar.MatchesPod(set, pod)
		selected := err == nil && failed == nil && inNamespace && selects
		switch {
		case ok && !selected:
			lines = append(lines, fmt.Sprintf("SidecarSet %s injected %s, and does not select the pod any more",
				set.Name, strings.Join(record.SidecarList, ", ")))
		case ok:
			lines = append(lines, fmt.Sprintf("SidecarSet %s injected %s%s", set.Name,
				strings.Join(record.SidecarList, ", "), outdated(set, record)))
		case selected:
			lines = append(lines, fmt.Sprintf("SidecarSet %s selects the pod, which was created without it", set.Name))
		}
	}
	return lines
}

// outdated returns why a pod has an older version of a set; empty where it has the newest.
func outdated(set *v1beta1.SidecarSet, record kruise.SidecarSetInjected) string {
	hash, err := sidecar.Hash(set)
	u := set.Spec.UpdateStrategy
	switch {
	case err != nil || hash == record.Hash:
		return ""
	case u.Paused:
		return ", outdated: the rollout of the set is paused"
	case u.Type == v1beta1.NotUpdateSidecarSetStrategyType:
		return ", outdated: the set updates no running pods"
	case u.Partition != nil:
		return ", outdated: partition " + u.Partition.String()
	default:
		return ", outdated"
	}
}

// Marks returns what annotations of a pod hold about other objects.
func Marks(pod *corev1.Pod) []string {
	var lines []string
	for key, text := range map[string]string{
		kruise.MatchedWorkloadSpreadKey:      "WorkloadSpread assigned a subset: ",
		kruise.InjectedPersistentPodStateKey: "PersistentPodState chose the node: ",
		kruise.ContainerLaunchPriorityKey:    "containers start by launch priority: ",
	} {
		if value := pod.Annotations[key]; value != "" {
			lines = append(lines, text+value)
		}
	}
	slices.Sort(lines)
	return lines
}

// Requests returns the requests to recreate containers of a pod that have not ended.
func Requests(pod *corev1.Pod, items []unstructured.Unstructured) []string {
	var lines []string
	for i := range items {
		r, err := kinds.ReadContainerRecreateRequest(&items[i])
		if err != nil || r.Spec.PodName != pod.Name || r.Status.CompletionTime != nil {
			continue
		}
		var names []string
		for _, c := range r.Spec.Containers {
			names = append(names, c.Name)
		}
		lines = append(lines, fmt.Sprintf("ContainerRecreateRequest %s restarts %s: %s", r.Name, strings.Join(names, ", "),
			r.Status.Phase))
	}
	return lines
}

// Selecting returns the objects of a kind that select a pod by spec.selector.
func Selecting(pod *corev1.Pod, items []unstructured.Unstructured) []string {
	var lines []string
	for i := range items {
		fields, found, err := unstructured.NestedMap(items[i].Object, "spec", "selector")
		if err != nil || !found {
			continue
		}
		read, err := kinds.Read[metav1.LabelSelector](&unstructured.Unstructured{Object: fields})
		if err != nil {
			continue
		}
		if s, err := metav1.LabelSelectorAsSelector(read); err == nil && s.Matches(labels.Set(pod.Labels)) {
			lines = append(lines, items[i].GetKind()+" "+items[i].GetName())
		}
	}
	return lines
}

package explain

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
)

// NotUpdated returns why a pod of a workload has not the update revision, or has not completed its update. It returns
// nothing for a pod that has.
func NotUpdated(s kinds.Strategy, pod *corev1.Pod) []string {
	if s.UpdateRevision == "" {
		return []string{"the controller has not reported an update revision"}
	}
	if hook := held(s.Lifecycle, pod); hook != "" {
		return []string{hook}
	}
	if IsUpdated(s, pod) {
		if done, why := inplace.Completed(pod, policy()); !done {
			return []string{"updates in place: " + why.Text}
		}
		return nil
	}
	reasons := waits(s, pod)
	if change := ChangeOf(s, pod); change != "" {
		reasons = append(reasons, change)
	}
	return reasons
}

// RevisionOf returns the revision of a pod. A pod of a Deployment has none before its first update in place: it has the
// hash of its ReplicaSet.
func RevisionOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[kruise.PodRevisionLabelKey], pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
}

// IsUpdated reports whether a pod has the update revision.
func IsUpdated(s kinds.Strategy, pod *corev1.Pod) bool {
	return revision.Match(pod.Labels[kruise.PodRevisionLabelKey], s.UpdateRevision)
}

// waits returns what keeps a pod at its older revision.
func waits(s kinds.Strategy, pod *corev1.Pod) []string {
	kept := kinds.Kept(s.Partition, s.Replicas)
	switch {
	case pod.DeletionTimestamp != nil:
		return []string{"terminates, and its successor gets revision " + s.UpdateRevision}
	case s.Paused:
		return []string{"the rollout is paused: kubectl kruise rollout resume"}
	case s.OnDelete:
		return []string{"the update strategy is OnDelete: the pod is updated when it is deleted"}
	case s.Ordinals && s.Partition != nil && ordinal(pod.Name) < s.Partition.IntValue():
		return []string{fmt.Sprintf("partition %s keeps ordinal %d at the older revision", s.Partition, ordinal(pod.Name))}
	case !s.Ordinals && kept > 0 && s.Updated >= s.Replicas-kept:
		return []string{fmt.Sprintf("partition %s keeps %d of %d pods at the older revision", s.Partition, kept, s.Replicas)}
	}
	limit := "the default"
	if s.MaxUnavailable != nil {
		limit = s.MaxUnavailable.String()
	}
	return []string{"waits until other pods are updated and available: maxUnavailable is " + limit}
}

func ordinal(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return 0
	}
	return n
}

// held returns what a hook of the lifecycle waits for; empty where none holds the pod.
func held(l *kruise.Lifecycle, pod *corev1.Pod) string {
	if l == nil {
		return ""
	}
	switch state := lifecycle.StateOf(pod); state {
	case kruise.LifecycleStatePreparingUpdate:
		if lifecycle.HasAny(pod, l.InPlaceUpdate) {
			return "hook inPlaceUpdate holds the pod before its update: remove " + words(l.InPlaceUpdate)
		}
	case kruise.LifecycleStateUpdated:
		if !lifecycle.HasAll(pod, l.InPlaceUpdate) {
			return "hook inPlaceUpdate holds the pod after its update: add " + words(l.InPlaceUpdate)
		}
	case kruise.LifecycleStatePreparingDelete:
		if lifecycle.HasAny(pod, l.PreDelete) {
			return "hook preDelete holds the pod before its deletion: remove " + words(l.PreDelete)
		}
	case kruise.LifecycleStatePreparingNormal:
		if !lifecycle.HasAll(pod, l.PreNormal) {
			return "hook preNormal holds the new pod: add " + words(l.PreNormal)
		}
	}
	return ""
}

// words returns the labels and finalizers of a hook.
func words(hook *kruise.LifecycleHook) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(hook.LabelsHandler)) {
		all = append(all, "label "+key+"="+hook.LabelsHandler[key])
	}
	for _, f := range hook.FinalizersHandler {
		all = append(all, "finalizer "+f)
	}
	return strings.Join(all, ", ")
}

// ChangeOf returns what an update does to a pod.
func ChangeOf(s kinds.Strategy, pod *corev1.Pod) string {
	if s.Policy == kinds.Recreate {
		return "the update recreates the pod, as its policy says"
	}
	change, err := diffPod(pod, s.Template, policy())
	var blocked *inplace.BlockedError
	if errors.As(err, &blocked) {
		var paths []string
		for _, b := range blocked.Blocks {
			paths = append(paths, b.Path)
		}
		if s.Policy == kinds.InPlaceOnly {
			return "the update cannot be made in place, and the policy forbids another: " + strings.Join(paths, ", ")
		}
		return "the update recreates the pod because of " + strings.Join(paths, ", ")
	}
	if err != nil {
		return "the update cannot be foreseen: " + err.Error()
	}
	restarts := change.Restarts(pod)
	if len(restarts) == 0 {
		return "the update is made in place and restarts no container"
	}
	return "the update is made in place and restarts " + strings.Join(restarts, ", ")
}

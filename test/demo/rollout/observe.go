package rollout

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// describe names a revision by what the story changes in it.
func describe(spec *corev1.PodSpec) string {
	var words []string
	for i := range spec.Containers {
		c := &spec.Containers[i]
		words = append(words, c.Image)
		for _, env := range c.Env {
			words = append(words, "+"+env.Name)
		}
	}
	return strings.Join(words, " ")
}

// memory is what there was before a step: the restarts of each pod.
type memory map[types.UID]int32

func remember(pods []corev1.Pod) memory {
	m := memory{}
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			m[pods[i].UID] = restarts(&pods[i])
		}
	}
	return m
}

func restarts(pod *corev1.Pod) int32 {
	n := int32(0)
	for i := range pod.Status.ContainerStatuses {
		n += pod.Status.ContainerStatuses[i].RestartCount
	}
	return n
}

// observed counts pods.
type observed struct {
	updated, kept int
	// restarted are containers of pods from before, and started those of others.
	restarted, started int
	// quiet reports that no writer is about to write to any pod: none leaves, starts, or is in the middle of a change.
	quiet bool
}

// observe counts pods. wanted is the revision of updated pods.
func observe(pods []corev1.Pod, before memory, wanted string) observed {
	o := observed{quiet: true}
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil {
			o.quiet = false
			continue
		}
		ready := lifecycle.ConditionOf(pod, corev1.PodReady)
		state := lifecycle.StateOf(pod)
		o.quiet = o.quiet && ready != nil && ready.Status == corev1.ConditionTrue &&
			(state == "" || state == kruise.LifecycleStateNormal)
		if describe(&pod.Spec) == wanted {
			o.updated++
		}
		if was, known := before[pod.UID]; known {
			o.kept++
			o.restarted += int(restarts(pod) - was)
		} else {
			o.started += len(pod.Spec.Containers)
		}
	}
	return o
}
